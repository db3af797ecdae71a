"""Commands of other packages: entry points of the group ``temperance.commands``."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated

import typer

from temperance.app.cli.console import one_line_errors
from temperance.app.cli.options import Command

GROUP = "temperance.commands"


def add_installed(app: typer.Typer) -> None:
    """Add the installed commands; without its package ``reproduce`` says what to install."""
    found = {each.name: each.load() for each in entry_points(group=GROUP)}
    for name, command in found.items():
        app.command(name, cls=Command)(command)
    if "reproduce" not in found:
        anything = {"ignore_unknown_options": True}
        app.command("reproduce", cls=Command, context_settings=anything)(reproduce)


def reproduce(words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
    """Reproduce the figures of the thesis (in a package of its own: temperance-studies)."""
    with one_line_errors(debug=False):
        raise ValueError("reproduce is in a package of its own: pip install temperance-studies")
