"""Write the numbers: ``python -m tests.golden.write``, or with the names of some problems."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from .kinds import recorded
from .problems import PROBLEMS

FILE = Path(__file__).with_name("numbers.json")


def stored() -> dict[str, dict[str, Any]]:
    """Return the numbers as they were written."""
    return json.loads(FILE.read_text())


def text_of(numbers: dict[str, dict[str, Any]]) -> str:
    """Return them as JSON, a line for each quantity of each problem, sorted."""
    problems = []
    for name, found in sorted(numbers.items()):
        lines = [
            f"    {json.dumps(key)}: {json.dumps(value, allow_nan=False)}"
            for key, value in sorted(found.items())
        ]
        problems.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(problems) + "\n}\n"


def main() -> None:
    """Compute all problems, or those named, and write them; the others keep their numbers."""
    parser = argparse.ArgumentParser(description="Record the golden numbers of this tree.")
    parser.add_argument("names", nargs="*", metavar="name", help="problems to write; default all")
    names = parser.parse_args().names or list(PROBLEMS)
    unknown = [name for name in names if name not in PROBLEMS]
    if unknown:
        parser.error(f"no such problem: {', '.join(unknown)}")
    known = stored() if FILE.exists() else {}
    numbers = {name: found for name, found in known.items() if name in PROBLEMS}
    for name in names:
        begin = time.process_time()
        numbers[name] = recorded(PROBLEMS[name])
        print(f"{time.process_time() - begin:7.3f} s  beta {numbers[name]['beta']:<10.4g} {name}")
    FILE.write_text(text_of(numbers))


if __name__ == "__main__":
    main()
