"""The only module that reads the system's clock. Everything else takes the time as an argument."""

from __future__ import annotations

import time
from typing import Protocol

from fleetctl.frozen import dataclass
from fleetctl.units import UnixMs


class Clock(Protocol):
    """Something that tells the time."""

    def now_ms(self) -> UnixMs:
        """Unix time in whole milliseconds, UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> UnixMs:
        return UnixMs(time.time_ns() // 1_000_000)


@dataclass(frozen=True, slots=True)
class FixedClock:
    """A clock that stands still: `--now`, and tests."""

    at_ms: UnixMs

    def now_ms(self) -> UnixMs:
        return self.at_ms
