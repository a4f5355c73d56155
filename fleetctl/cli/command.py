"""What every command has: the common options, and a callback that gets them as one value.

They may stand before or after the command's name; `FLEETCTL_…` gives each of them from the environment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import click
from click.core import ParameterSource

from fleetctl.cli.types import TIME, Count
from fleetctl.frozen import dataclass
from fleetctl.render.text import MIN_WIDTH
from fleetctl.units import UnixMs

Format = Literal["text", "json", "github"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The common options of one run. Absent ones are None; where they come from then is for `wiring` to know."""

    state: str | None = None
    steward_key: str | None = None
    witness: str | None = None
    tenant: str | None = None
    now: UnixMs | None = None
    format: Format = "text"
    width: int | None = None
    debug: bool = False


def common_options(formats: Sequence[str]) -> list[click.Option]:
    """The options themselves, made anew for each command."""
    return [
        click.Option(
            ["--format", "common_format"],
            type=click.Choice(formats),
            default="text",
            show_default=True,
            envvar="FLEETCTL_FORMAT",
            help="How the result is written to standard output.",
        ),
        click.Option(
            ["--state", "common_state"],
            metavar="URL",
            envvar="FLEETCTL_STATE",
            help="The engine's state, such as sqlite:PATH.",
        ),
        click.Option(
            ["--steward-key", "common_steward_key"],
            metavar="FILE",
            envvar="FLEETCTL_STEWARD_KEY",
            help="The private key that seals.",
        ),
        click.Option(
            ["--witness", "common_witness"],
            metavar="URL",
            envvar="FLEETCTL_WITNESS",
            help="Where heads are countersigned.",
        ),
        click.Option(
            ["--as", "common_tenant"],
            metavar="TENANT",
            envvar="FLEETCTL_AS",
            help="Who acts; the root tenant if absent.",
        ),
        click.Option(
            ["--now", "common_now"],
            type=TIME,
            envvar="FLEETCTL_NOW",
            help="The time of queries and plans; sealing commands take it only on an engine with a test clock.",
        ),
        click.Option(
            ["--width", "common_width"],
            metavar="N",
            type=Count(min=MIN_WIDTH),
            envvar="FLEETCTL_WIDTH",
            help="Columns of text; the terminal's, and 80 through a pipe, if absent.",
        ),
        click.Option(
            ["--debug", "common_debug"],
            is_flag=True,
            envvar="FLEETCTL_DEBUG",
            help="Add a traceback to unexpected errors.",
        ),
    ]


_WHOLE = 1_000  # characters: no sentence of a help text is longer
_PREFIX = "common_"
"""Of the parameters' names, so that none meets one of a command's own."""
COMMON = tuple((option.name or "").removeprefix(_PREFIX) for option in common_options(("text", "json")))


class Helped(click.Command):
    """A command with `-h` too, whatever context asks first: click keeps the help option that it made then."""

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        return ["-h", "--help"]


class Command(Helped):
    """A command with the common options. Its callback takes `Settings` first (`click.pass_obj`).

    `own` names common options that this command has another meaning for (`ledger verify --steward-key PUB`).
    """

    def __init__(
        self, *args: Any, formats: Sequence[str] = ("text", "json"), own: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        for option in common_options(formats):
            name = (option.name or "").removeprefix(_PREFIX)
            if name not in own:
                option.hidden = name != "format"
                self.params.append(option)
        self.own = frozenset(own)
        self.formats = tuple(formats)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("Common options, such as --state and --now, are in `fleetctl --help`.")

    def invoke(self, ctx: click.Context) -> Any:
        ctx.obj = settings_of(ctx, self.own)
        if ctx.obj.format not in self.formats:
            ctx.fail(f"`--format {ctx.obj.format}` is not known here; choose from {', '.join(self.formats)}.")
        for name in COMMON:
            ctx.params.pop(_PREFIX + name, None)
        return super().invoke(ctx)


class Group(Helped, click.Group):
    """A group that lists its commands with the whole first sentence of their help, in as many lines as it needs."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self.commands[name].get_short_help_str(_WHOLE)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def settings_of(ctx: click.Context, own: frozenset[str] = frozenset()) -> Settings:
    """The common options of a command: what stands after its name, else before it, else the environment's."""
    root = ctx.find_root()
    values: dict[str, Any] = {}
    for name in COMMON:
        here = root if name in own or _given(root, name) and not _given(ctx, name) else ctx
        values[name] = here.params.get(_PREFIX + name)
    return Settings(**values)


def _given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(_PREFIX + name) is ParameterSource.COMMANDLINE


def command(
    name: str, *, formats: Sequence[str] = ("text", "json"), own: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Command]:
    """Declares a command. Help is the callback's docstring, with an example in it."""

    def declare(callback: Callable[..., Any]) -> Command:
        made = click.command(name, cls=Command, formats=formats, own=own)(click.pass_obj(callback))
        assert isinstance(made, Command)
        return made

    return declare
