"""Columns that cannot be used: one line that names all of them and the remedies."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from temperance.checks import LARGEST, shown

if TYPE_CHECKING:
    import pandas

Remedy = Literal["drop", "days", "cells", "unit"]

REPAIR = (
    "correct it, leave the cell empty and use --drop-missing, or leave the column out with --drop"
)
# Remedy for one column, and for several besides leaving them out.
REMEDIES: dict[Remedy, tuple[str, str]] = {
    "drop": ("leave it out with --drop", ""),
    "days": (
        "count its days with --dates-as-days, or leave it out with --drop",
        "count the days of dates with --dates-as-days",
    ),
    "cells": (REPAIR, "correct cells, or leave them empty and use --drop-missing"),
    "unit": ("change its unit, or leave it out with --drop", "change units"),
}


@dataclass(frozen=True)
class Problem:
    """What is wrong with a column, as a phrase that follows its name, and the remedy."""

    column: str
    what: str
    remedy: Remedy = "drop"


def described(problems: Sequence[Problem], kept: Collection[str] = ()) -> str:
    """Return one line on all problems; columns that must be ``kept`` are not to be dropped.

    Examples
    --------
    >>> print(described([Problem("a", "holds lists"), Problem("my id", "looks like an id")]))
    2 columns cannot be used: 'a' holds lists; 'my id' looks like an id; leave them out with
    --drop a --drop 'my id'
    """
    if len(problems) == 1:
        [only] = problems
        return f"column {shown(only.column)} {only.what}; {REMEDIES[only.remedy][0]}"
    what = "; ".join(f"{shown(each.column)} {each.what}" for each in problems)
    remedies = dict.fromkeys(REMEDIES[each.remedy][1] for each in problems)
    dropped = [each.column for each in problems if each.column not in kept]
    drop = " ".join(f"--drop {shlex.quote(name)}" for name in dropped)
    ways = [*filter(None, remedies), *([f"leave them out with {drop}"] if dropped else [])]
    return f"{len(problems)} columns cannot be used: {what}; {', or '.join(ways)}"


def size_problems(numbers: pandas.DataFrame, smallest: float = 1 / LARGEST) -> list[Problem]:
    """Return problems of columns with infinite numbers, or whose squares overflow or vanish."""
    values = numbers.to_numpy()
    if not values.size:
        return []
    largest = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)
    invalid = (largest > LARGEST) | ((0 < largest) & (largest < smallest))
    found = []
    for at in np.flatnonzero(invalid):
        name, size = str(numbers.columns[at]), largest[at]
        if np.isinf(size):
            row = int(np.argmax(np.isinf(values[:, at])))
            place = f"{shown(values[row, at])} in data row {numbers.index[row] + 1}"
            found.append(Problem(name, f"has {place}", "cells"))
            continue
        accepted = f"must be 0 or between {1 / LARGEST:g} and {LARGEST:g} in size"
        found.append(Problem(name, f"{accepted}, got at most {size:.3g}", "unit"))
    return found
