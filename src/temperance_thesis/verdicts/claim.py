r"""What a claim is, what decides it, and the rule that turns numbers into a word.

A claim is a set of checks.  A check is an estimate and the range in which the claim puts it.  It
supports the claim if the estimate and two standard errors on both sides lie in the range,
contradicts it if they lie outside, and is open otherwise.  A claim that says several things at once
has its checks in parts, which are judged one by one: it cannot hold unless all of them do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from temperance.datasets import VERSIONS
from temperance_thesis.verdicts.estimates import Estimate

if TYPE_CHECKING:
    from temperance_thesis.verdicts.evidence import Evidence

Word = Literal["holds", "fails", "depends", "open"]
SUPPORTS, CONTRADICTS, OPEN = "✓", "✗", "?"
ERRORS = 2.0
# A cell of the table shows so many checks one by one; more are counted.
SHOWN = 6


@dataclass(frozen=True)
class Check:
    """One comparison: a number, its standard error, and the range that is claimed for it.

    Parameters
    ----------
    version : str
        "as-stated" or "as-coded".
    where : str
        What was measured, in a word or two.
    estimate : Estimate
    low, high : float
        The claimed range, its ends left out.
    about : bool
        Whether the claim is about a value, for which the range allows.  Then it is enough that the
        estimate lies in the range and two errors are less than its width.
    part : str
        Which of several statements of the claim the check is about.

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
        """Whether the check supports the claim, contradicts it, or leaves it open."""
        reach = ERRORS * self.estimate.error
        least, most = self.estimate.mean - reach, self.estimate.mean + reach
        if self.low < least and most < self.high:
            return SUPPORTS
        if self.about and self.low < self.estimate.mean < self.high:
            return SUPPORTS if reach < self.high - self.low else OPEN
        return CONTRADICTS if least >= self.high or most <= self.low else OPEN

    def __str__(self) -> str:
        """Show where, the number and the mark."""
        return f"{self.where} {self.estimate} {self.mark}"


@dataclass(frozen=True)
class Decision:
    """The word on a claim, and the numbers that it follows from."""

    word: Word
    test: str
    stated: str
    coded: str
    checks: tuple[Check, ...]

    @property
    def support(self) -> str:
        """How many checks support the claim, contradict it, and leave it open; and its parts."""
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
        """Whether it depends, yet no check contradicts the claim."""
        return self.word == "depends" and not self.contradicted


@dataclass(frozen=True)
class Claim:
    """One empirical statement.

    Parameters
    ----------
    key : str
    where : str
        The part of the thesis that makes the claim, or "ours" for a question that it leaves open.
    quote : str
        The claim, in our words.
    test : str
        What is compared, and what the claim says about it.
    checks : callable
        From the evidence to the checks, all of them.
    timed : bool
        Whether the numbers are times, which differ from run to run.
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
        """Measure, and apply the rule."""
        checks = tuple(self.checks(evidence))
        stated, coded = ([check for check in checks if check.version == v] for v in VERSIONS)
        same = self.one_version and not coded
        return Decision(
            word(checks), self.test, cell(stated), "same" if same else cell(coded), checks
        )


def word(checks: Sequence[Check]) -> Word:
    """Return "holds" if all checks support a claim, "depends" if some do.

    If none does, it "fails" where a check contradicts the claim, and is "open" otherwise.  Of
    several parts each is judged so.  The claim holds if all parts do, and fails if one part does.
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
    """Group the checks by the part of the claim that they are about."""
    found: dict[str, list[Check]] = {}
    for check in checks:
        found.setdefault(check.part, []).append(check)
    return found


def contradicted(checks: Sequence[Check]) -> bool:
    """Return whether any check contradicts what is claimed."""
    return any(check.mark == CONTRADICTS for check in checks)


def counted(checks: Sequence[Check]) -> str:
    """Count the marks: supporting, contradicting, open."""
    marks = [check.mark for check in checks]
    return " ".join(
        f"{marks.count(mark)} {mark}" for mark in (SUPPORTS, CONTRADICTS, OPEN) if mark in marks
    )


def cell(checks: Sequence[Check]) -> str:
    """Show a few checks one by one; of many, counts, range, and which support the claim."""
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
