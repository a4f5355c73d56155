"""The one tree of errors. Each carries diagnostics, an exit code and an HTTP status.

FleetctlError
├── BadInput            1   400  the input is wrong: files, arguments, bodies
├── EngineRefused       1   by engine code: NOT_FOUND 404, CONFLICT and INVALID_STATE 409, ACCESS_DENIED 403, else 400
├── Unreachable         1   503  engine, file or key cannot be opened
├── SafetyRefused       3   409  an unaccepted danger, a missing signature, a foreign or edited plan, an empty source
│   ├── NotAccepted     3   409  the danger of a deletion, with what that would take down (in engine.deletion)
│   ├── Tampered        3   409  the live state is not what the journal sealed
│   └── NotVerified     3   409  a ledger or a receipt does not verify
│       ├── WitnessElsewhere 3 409  a witness knows the ledger at another place (in ports)
│       └── WitnessContradicts 3 409  a witness signs another head than it was shown (in ports)
├── Stale               4   412  what the plan was made against has moved
├── Busy                4   503  another apply did not finish in time
├── WitnessMissing      5   503  committed, but a required witness has not countersigned
│   ├── Unwitnessed     5   503  the same, with what was applied (in engine.apply)
│   └── RotatedUnwitnessed 5 503  the same, with what was rotated (in engine.rotating)
├── Usage               64  400  the command line is wrong
└── Interrupted         130 499  stopped before anything was committed
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from fleetctl.diagnostics import Diagnostic

_ENGINE_STATUS = {"NOT_FOUND": 404, "CONFLICT": 409, "INVALID_STATE": 409, "ACCESS_DENIED": 403}


class FleetctlError(Exception):
    """Base of everything fleetctl raises on purpose. Never raised itself."""

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 400

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        found = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        if not found:
            raise ValueError("an error needs at least one diagnostic")
        self.diagnostics = found
        super().__init__("; ".join(f"{item.code.name}: {item.detail}" for item in found))

    @property
    def code(self) -> str:
        """The first diagnostic's code."""
        return self.diagnostics[0].code.name

    @property
    def status(self) -> int:
        """The HTTP status that a service answers with."""
        return self.http_status


class BadInput(FleetctlError):
    """The input cannot be used as it stands."""


class EngineRefused(FleetctlError):
    """The engine's rules do not allow the command; the diagnostic's `engine_code` is the seed's word for it."""

    @property
    def engine_code(self) -> str:
        return self.diagnostics[0].code.engine_code or "INVALID_INPUT"

    @property
    def status(self) -> int:
        return _ENGINE_STATUS.get(self.engine_code, 400)


class Unreachable(FleetctlError):
    """An engine, a file or a key cannot be opened."""

    http_status = 503


class SafetyRefused(FleetctlError):
    """A safety rule refuses."""

    exit_code = 3
    http_status = 409


class Tampered(SafetyRefused):
    """The live state differs from what the journal last sealed."""


class NotVerified(SafetyRefused):
    """A signature, a chain or a receipt does not verify."""


class Stale(FleetctlError):
    """What the plan was made against has moved: plan again."""

    exit_code = 4
    http_status = 412


class Busy(FleetctlError):
    """Another writer held the engine for longer than the wait."""

    exit_code = 4
    http_status = 503


class WitnessMissing(FleetctlError):
    """Applied and committed, but a required witness has not countersigned."""

    exit_code = 5
    http_status = 503


class Usage(FleetctlError):
    """The command line is wrong."""

    exit_code = 64


class Interrupted(FleetctlError):
    """Stopped by the user before anything was committed."""

    exit_code = 130
    http_status = 499
