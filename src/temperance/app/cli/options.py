"""Options and their checks: errors name the option, its value and what is accepted."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from temperance.checks import shown


class Command(TyperCommand):
    """A command whose option errors refer to its own help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; an error about a missing value gets the command's context."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]
            raise


def whole_number(help: str, least: int | None = None, **more: Any) -> Any:
    """Return an option for whole numbers, of at least ``least`` if given."""
    return typer.Option(parser=_integer(least), metavar="INTEGER", help=help, **more)


def real_number(help: str, metavar: str = "NUMBER", **more: Any) -> Any:
    """Return an option for real numbers."""
    return typer.Option(parser=_number, metavar=metavar, help=help, **more)


def number_or(word: str, help: str, **more: Any) -> Any:
    """Return an option for real numbers or one word."""

    def parse(text: str) -> Any:
        return word if text == word else _number(text, f"a number or {word}")

    return typer.Option(parser=parse, metavar=f"NUMBER|{word}", help=help, **more)


def _integer(least: int | None) -> Callable[[str], int]:
    wanted = "an integer" if least is None else f"an integer of at least {least}"

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = None
        if value is None or (least is not None and value < least):
            raise typer.BadParameter(f"{shown(text)} is not {wanted}")
        return value

    return parse


def _number(text: str, wanted: str = "a number") -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{shown(text)} is not {wanted}") from None


def refuse_unwritable(option: str, path: Path) -> None:
    """Refuse a file that cannot be written, before the work starts."""
    if path.is_dir():
        raise ValueError(f"{option} must name a file, {path} is a directory")
    if path.exists() and not path.is_file():
        raise ValueError(f"{option} must name a file, {path} is something else")
    directory = path.resolve().parent
    if not directory.is_dir():
        raise ValueError(f"{option} {path} lies in a directory that does not exist")
    refuse_unwritable_directory(f"{option} {path} lies in a directory that", directory)


def refuse_unwritable_directory(what: str, directory: Path) -> None:
    """Refuse a directory in which no file can be created; this needs a trial."""
    try:
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        why = str(error.strerror).lower()
        raise ValueError(f"{what} cannot be written to: {why}") from None
