"""The pure commands: JSON in, JSON out, no state. What an auditor re-runs."""

from __future__ import annotations

from pathlib import Path

import click

from fleetctl.cli.command import Group, Settings, command
from fleetctl.cli.jsonio import answer_lines, answer_one
from fleetctl.cli.types import FILE_PATH

_FILE = click.argument("file", type=FILE_PATH, default="-")
_LINES = click.option(
    "--lines", is_flag=True, help="JSON Lines: one answer a line, in order; exit 1 if any was malformed."
)


@click.group("pool1", cls=Group, no_args_is_help=True)
def pool1() -> None:
    """Decide in JSON what pool/1 decides, without any state: one object from FILE or standard input, one answer.

    Figures are integers, or decimal text where a JSON writer would lose digits. The answer is JSON whatever --format says.
    """


def _declare(name: str, help: str) -> None:
    @_LINES
    @_FILE
    def run(_settings: Settings, file: Path, lines: bool) -> int:
        from fleetctl.pool1.wire import COMMANDS

        return (answer_lines if lines else answer_one)(COMMANDS[name], str(file))

    run.__doc__ = help
    pool1.add_command(command(name)(run))


_declare(
    "decide",
    """May this claim start: Admit, Queue or Deny, with every reason and figure (pool/1 section 4).

    \b
    Input (? may be left out):
      {"tree": [{"id", "parent"?, "guarantee_uj", "guarantee_devices",
                 "over_quota_weight", "limit_uj"?, "priority"?}],
       "usage"?: {ID: {"spent_uj"?, "reserved_uj"?, "devices"?}},
       "claim": {"entitlement", "gang_size", "devices_per_member",
                 "estimate_uj", "grade", "class"?}}

    \b
    Example:
      fleetctl pool1 decide claim.json
    """,
)
_declare(
    "preempt",
    """In which order running work yields (pool/1 section 5).

    \b
    Input:
      {"workloads": [{"id", "entitlement", "priority", "spent_uj", "grade",
                      "completed_units", "devices", "reserved_uj"}]}

    \b
    Example:
      fleetctl pool1 preempt workloads.json
    """,
)
_declare(
    "attribute",
    """Divide a device's energy over its occupants, exactly (pool/1 section 2.5).

    \b
    Input (? may be left out):
      {"total_uj", "grade", "basis"?, "occupants": [{"id", "weight"}]}

    \b
    Example:
      fleetctl pool1 attribute device.json
    """,
)
_declare(
    "derive",
    """Derive an estimate from what comparable work has cost (pool/1 section 2.6).

    \b
    Input (? may be left out; 3 are required then):
      {"class", "required"?, "observations": [{"class", "energy_uj", "grade"}]}

    \b
    Example:
      fleetctl pool1 derive --lines < observations.jsonl
    """,
)
_declare(
    "idle",
    """Which work is idle, why, and in which order it is reclaimed (pool/1 section 2.7).

    \b
    Input (? may be left out; nothing is reclaimed then):
      {"policy": {"window_ms"?, "threshold_uw"?},
       "workloads": [{"id", "devices", "observed_ms", "energy_uj", "grade",
                      "weight_zero"?}]}

    \b
    Example:
      fleetctl pool1 idle observed.json
    """,
)
