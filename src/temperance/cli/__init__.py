"""The command line: options, progress and words around the library; no numerics."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command ``temperance``."""
    try:
        from temperance.cli.app import app
    except ModuleNotFoundError as error:
        print(
            f"temperance: the command line needs {error.name}: pip install 'temperance[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    app(prog_name="temperance")
