r"""What a study records of each choice, and how its store arranges that.

A measure that arranges its results otherwise gets another format, by which its stores are known.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from temperance_studies.study.database import stored_format

# NULL stands for NaN.
RISKS = """CREATE TABLE results (
    key TEXT PRIMARY KEY, setting TEXT, repetition INTEGER, strategy TEXT, beta REAL, alpha REAL,
    risk REAL, excess REAL, best_beta REAL, best_risk REAL, bayes_risk REAL, estimated_risk REAL,
    estimated_error REAL, seconds REAL, checksum TEXT
) WITHOUT ROWID"""
COVERAGES = """CREATE TABLE results (
    key TEXT PRIMARY KEY, setting TEXT, repetition INTEGER, strategy TEXT, beta REAL, alpha REAL,
    joint REAL, single REAL, length REAL, covered TEXT, seconds REAL, checksum TEXT
) WITHOUT ROWID"""


class Result(NamedTuple):
    """The choice of a strategy on one data set, and its true risk."""

    beta: float
    alpha: float
    risk: float
    excess: float
    best_beta: float
    best_risk: float
    bayes_risk: float
    estimated_risk: float
    estimated_error: float
    seconds: float


class CoverageResult(NamedTuple):
    """The choice of a strategy on one data set, and what its 95 % credible sets cover."""

    beta: float
    alpha: float
    joint: float  # 1 if the joint set covers the parameter, else 0
    single: float  # share of the single intervals that cover
    length: float  # mean length of the single intervals
    covered: str  # 1 or 0 for the interval of each coefficient
    seconds: float


class Measure(NamedTuple):
    """What a study records of each choice, and how its store arranges that."""

    format: str
    results: str  # the statement that creates their table
    fields: tuple[str, ...]
    texts: tuple[str, ...] = ()  # fields that are no numbers

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table of a study."""
        return ("setting", "repetition", "strategy", *self.fields)


MEASURES: dict[str, Measure] = {
    "risk": Measure("temperance study, format 3", RISKS, Result._fields),
    "coverage": Measure(
        "temperance study of coverage, format 1", COVERAGES, CoverageResult._fields, ("covered",)
    ),
}


def measure_of(path: str | os.PathLike[str] | None) -> str:
    """Return what an existing store records: risk, unless its format is another measure's."""
    stored = stored_format(path)
    return next((name for name, each in MEASURES.items() if each.format == stored), "risk")
