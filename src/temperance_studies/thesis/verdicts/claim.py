r"""Claims, their checks, and the rule that derives a verdict from numbers.

A claim is a set of checks.  A check is an estimate and the range that the claim gives for it.  It
supports the claim if the estimate and two standard errors on both sides lie in the range,
contradicts it if they lie outside, and is open otherwise.  The checks of a claim with several
statements are grouped in parts, which are evaluated separately; it holds only if all of them do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from temperance_studies.settings import VERSIONS
from temperance_studies.thesis.verdicts.estimates import Estimate

if TYPE_CHECKING:
    from temperance_studies.thesis.verdicts.evidence import Evidence

Word = Literal["holds", "fails", "depends", "open"]
SUPPORTS, CONTRADICTS, OPEN = "✓", "✗", "?"
ERRORS = 2.0
# A cell of the table shows up to this many checks; more are counted.
SHOWN = 6


@dataclass(frozen=True)
class Check:
    """One comparison: a number, its standard error, and the range that is claimed for it.

    Parameters
    ----------
    version : str
        "as-stated" or "as-coded".
    where : str
        Short description of what was measured.
    estimate : Estimate
    low, high : float
        The claimed open range.
    about : bool
        Whether the claim is about a value, with the range as tolerance.  Then it is sufficient that
        the estimate lies in the range and two errors are less than its width.
    part : str
        Statement of the claim to which the check belongs.

    Examples
    --------
    >>> Check("as-stated", "linear-40-40-8", Estimate(-0.5, 0.1), high=0.0).mark
    '✓'
    """

    version: str
    where: str
    estimate: Estimate
    low: float = -math.inf
    high: float = math.inf
    about: bool = False
    part: str = ""

    @property
    def mark(self) -> str:
        """Whether the check supports the claim, contradicts it, or is open."""
        margin = ERRORS * self.estimate.error
        least, most = self.estimate.mean - margin, self.estimate.mean + margin
        if self.low < least and most < self.high:
            return SUPPORTS
        if self.about and self.low < self.estimate.mean < self.high:
            return SUPPORTS if margin < self.high - self.low else OPEN
        return CONTRADICTS if least >= self.high or most <= self.low else OPEN

    def __str__(self) -> str:
        """Return where, the number and the mark, as text."""
        return f"{self.where} {self.estimate} {self.mark}"


@dataclass(frozen=True)
class Decision:
    """The verdict on a claim, and the numbers that it is derived from."""

    word: Word
    test: str
    stated: str
    coded: str
    checks: tuple[Check, ...]

    @property
    def support(self) -> str:
        """Numbers of supporting, contradicting and open checks, and the parts, as text."""
        words = {name: word(part) for name, part in parts(self.checks).items()}
        if len(words) == 1:
            return counted(self.checks)
        return f"{counted(self.checks)}; " + ", ".join(f"{n}: {w}" for n, w in words.items())

    @property
    def contradicted(self) -> bool:
        """Whether any check contradicts the claim."""
        return contradicted(self.checks)

    @property
    def undecided(self) -> bool:
        """Whether the verdict is "depends" although no check contradicts the claim."""
        return self.word == "depends" and not self.contradicted


@dataclass(frozen=True)
class Claim:
    """One empirical statement.

    Parameters
    ----------
    key : str
    where : str
        The part of the thesis with the claim, or "ours" for a question that it leaves open.
    quote : str
        The claim, in our words.
    test : str
        What is compared, and the claimed result.
    checks : callable
        Function from the evidence to all checks.
    timed : bool
        Whether the numbers are times, which vary between runs.
    one_version : bool
        Whether the setting is the same in both versions.
    """

    key: str
    where: str
    quote: str
    test: str
    checks: Callable[[Evidence], Sequence[Check]]
    timed: bool = False
    one_version: bool = False

    def decide(self, evidence: Evidence) -> Decision:
        """Return the decision from the evidence, by the rule."""
        checks = tuple(self.checks(evidence))
        stated, coded = ([check for check in checks if check.version == v] for v in VERSIONS)
        same = self.one_version and not coded
        return Decision(
            word(checks), self.test, cell(stated), "same" if same else cell(coded), checks
        )


def word(checks: Sequence[Check]) -> Word:
    """Return "holds" if all checks support a claim, "depends" if some do.

    If none does, it "fails" if a check contradicts the claim, and is "open" otherwise.  Several
    parts are evaluated separately: the claim holds if all parts do, and fails if one part does.
    """
    if not checks:
        raise ValueError("a claim needs at least one check, got none")
    several = list(parts(checks).values())
    if len(several) == 1:
        supporting = sum(check.mark == SUPPORTS for check in checks)
        if supporting == len(checks):
            return "holds"
        if supporting:
            return "depends"
        return "fails" if contradicted(checks) else "open"
    if all(word(part) == "holds" for part in several):
        return "holds"
    if any(word(part) == "fails" for part in several):
        return "fails"
    return "open" if all(word(part) == "open" for part in several) else "depends"


def parts(checks: Sequence[Check]) -> dict[str, list[Check]]:
    """Return the checks grouped by the part of the claim."""
    found: dict[str, list[Check]] = {}
    for check in checks:
        found.setdefault(check.part, []).append(check)
    return found


def contradicted(checks: Sequence[Check]) -> bool:
    """Return whether any check contradicts what is claimed."""
    return any(check.mark == CONTRADICTS for check in checks)


def counted(checks: Sequence[Check]) -> str:
    """Return the counts of supporting, contradicting and open checks, as text."""
    marks = [check.mark for check in checks]
    return " ".join(
        f"{marks.count(mark)} {mark}" for mark in (SUPPORTS, CONTRADICTS, OPEN) if mark in marks
    )


def cell(checks: Sequence[Check]) -> str:
    """Return a few checks as text; for many, counts, range, and those that support the claim."""
    if not checks:
        return "not measured"
    if len(checks) <= SHOWN:
        return "; ".join(map(str, checks))
    values = sorted(check.estimate.mean for check in checks)
    text = f"{counted(checks)}; {values[0]:.3g} to {values[-1]:.3g}, median {median(values):.3g}"
    supporting = [check.where for check in checks if check.mark == SUPPORTS]
    others = [check.where for check in checks if check.mark != SUPPORTS]
    if supporting and len(supporting) <= SHOWN:
        return f"{text}; supported: {', '.join(supporting)}"
    if others and len(others) <= SHOWN:
        return f"{text}; supported in all but {', '.join(others)}"
    return text
