"""The command line: options, progress and output; no numerics."""

from __future__ import annotations

import io
import os
import sys

CLOSED_PIPE = 141


def main() -> None:
    """Run the command ``temperance``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # some encodings lack the letter beta
    try:
        code = _run()
        sys.stdout.flush()
        raise SystemExit(code)
    except BrokenPipeError:
        stop_writing()
        raise SystemExit(CLOSED_PIPE) from None
    except KeyboardInterrupt:
        print("temperance: interrupted", file=sys.stderr)
        raise SystemExit(130) from None


def _run() -> int:
    """Run the command and return the exit code; errors in options are one line."""
    try:
        from temperance.app.cli.app import app
    except ModuleNotFoundError as error:
        print(
            f"temperance: the command line needs {str(error.name).partition('.')[0]}: "
            "pip install 'temperance[cli]'",
            file=sys.stderr,
        )
        return 2
    try:
        return app(prog_name="temperance", standalone_mode=False) or 0
    except SystemExit:  # raised by typer and rich when the output is closed
        return CLOSED_PIPE
    except Exception as error:
        if type(error).__name__ == "Abort":  # an interrupt outside a command
            raise KeyboardInterrupt from None
        if not hasattr(error, "format_message"):
            raise
        message = " ".join(error.format_message().split()).rstrip(".")
        message = message.replace(": Value error, ", ": ")  # prefix of another library
        if message:  # no message: the help was shown
            path = getattr(getattr(error, "ctx", None), "command_path", "temperance")
            print(f"temperance: {message}; see {path} --help", file=sys.stderr)
        return getattr(error, "exit_code", 2)


def stop_writing() -> None:
    """Discard further output: Python would report that it cannot be written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
