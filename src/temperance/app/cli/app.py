"""The application and its commands."""

from __future__ import annotations

from typing import Annotated

import typer

import temperance
from temperance.app.cli.calibrate import calibrate
from temperance.app.cli.installed import add_installed
from temperance.app.cli.options import Command
from temperance.app.cli.predict import predict

app = typer.Typer(
    help="How much should a posterior trust its likelihood? Calibrate it from the data at hand.",
    epilog="Try [bold]temperance calibrate[/bold]: without a file it runs on bundled data.",
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("calibrate", cls=Command)(calibrate)
app.command("predict", cls=Command)(predict)
add_installed(app)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"temperance {temperance.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Define the group of commands."""


root.__doc__ = None  # so that the help shows the app's text
