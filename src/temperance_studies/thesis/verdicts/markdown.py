"""Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Return a table whose rows all have as many cells as its header.

    Examples
    --------
    >>> print(table(["a", "b"], [["1", "2 | 3"]]))
    | a | b |
    |---|---|
    | 1 | 2 \| 3 |
    """
    lines = [_line(header), "|" + "---|" * len(header)]
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"rows must have {len(header)} cells, got {len(row)}: {row}")
        lines.append(_line(row))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
