"""A group whose commands are imported when they run, so that `--help` and small commands stay quick to start."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from fleetctl.cli.command import Helped
from fleetctl.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command is (`module:attribute`), its first line of help, and the section that it is listed in."""

    where: str
    help: str
    section: str = "Commands"

    def load(self) -> click.Command:
        module, _, attribute = self.where.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, click.Command), self.where
        return found


class LazyGroup(Helped, click.Group):
    """A group over a table of entries; listing them imports nothing."""

    def __init__(self, *args: Any, entries: Mapping[str, Entry], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.entries = dict(entries)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands and cmd_name in self.entries:
            self.commands[cmd_name] = self.entries[cmd_name].load()
        return self.commands.get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.entries and not name.startswith("-"):
            ctx.fail(f"There is no command `{name}`{_nearest(name, self.entries)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.entries.items():
            sections.setdefault(entry.section, []).append((name, entry.help))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)


def _nearest(name: str, known: Mapping[str, Entry]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean `{close[0]}`?" if close else ""
