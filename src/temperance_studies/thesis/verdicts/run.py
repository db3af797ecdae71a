"""The run that wrote a page: its time, its workers, and which results were stored before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

COMMAND = "temperance reproduce --all --verdicts"
LISTED = 6  # settings named one by one


@dataclass(frozen=True)
class Run:
    """The run of a page.

    Parameters
    ----------
    command : str
        The command that makes the page.
    workers : int
    seconds : mapping
        Wall time of each piece of work.
    data_sets : mapping
        Numbers of computed and of stored data sets, by setting.
    """

    command: str = COMMAND
    workers: int = 1
    seconds: Mapping[str, float] = field(default_factory=dict)
    data_sets: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def described(self, parts: Mapping[str, float] | None = None) -> str:
        """Return text on the time, the workers, and the results taken from a store.

        Parameters
        ----------
        parts : mapping, optional
            Seconds of the parts of the verdicts.

        Examples
        --------
        >>> run = Run("do", 2, {"comparisons": 90.0}, {"line": (30, 0)})
        >>> run.described()  # doctest: +ELLIPSIS
        'The run took 90 s of wall time with 2 workers: comparisons 90 s. All of its 30 ...'
        """
        if not self.seconds:
            return ""
        workers = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        total = sum(self.seconds.values())
        sentences = [
            f"The run took {total:.0f} s of wall time with {workers}: {_spent(self.seconds)}."
        ]
        if parts:
            sentences.append(f"Of the verdicts: {_spent(parts)}.")
        sentences.append(self._sources())
        return " ".join(each for each in sentences if each)

    def _sources(self) -> str:
        computed, stored = (sum(each[i] for each in self.data_sets.values()) for i in (0, 1))
        if not computed + stored:
            return ""
        if not stored:
            return f"All of its {computed:,} data sets were computed in it."
        older = "whose seconds, below, are those of the run that made them"
        if not computed:
            return f"All of its {stored:,} data sets were taken from the store, {older}."
        return (
            f"Of its {computed + stored:,} data sets {computed:,} were computed in it: "
            f"{self._computed()}. The other {stored:,} were taken from the store, {older}."
        )

    def _computed(self) -> str:
        """Return the settings with computed data sets as text; of many only the number."""
        new = {name: counts for name, counts in self.data_sets.items() if counts[0]}
        if len(new) > LISTED:
            return f"in {len(new)} of {len(self.data_sets)} settings"
        return ", ".join(
            f"{count} of {count + stored} of {name}" for name, (count, stored) in new.items()
        )


def _spent(seconds: Mapping[str, float]) -> str:
    """Return what took a fiftieth of the time or more, and the sum of the rest, as text."""
    least = sum(seconds.values()) / 50
    listed = {what: each for what, each in seconds.items() if each >= least}
    rest = [each for what, each in seconds.items() if what not in listed]
    if rest:
        listed[f"the other {len(rest)} together" if len(rest) > 1 else "the other"] = sum(rest)
    return ", ".join(f"{what} {each:.0f} s" for what, each in listed.items())
