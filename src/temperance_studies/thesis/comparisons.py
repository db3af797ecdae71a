"""The comparisons of ``temperance reproduce``: stored, shared, with one progress bar."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temperance.app.cli.console import Steps
from temperance_studies.settings import AS_CODED, AS_STATED
from temperance_studies.study import Comparison, compare, remaining, united
from temperance_studies.study.identity import digest


@dataclass(frozen=True)
class StoredStudy:
    """``study.compare`` with one store for each setting and seed, shared by figures.

    Parameters
    ----------
    directory : Path
    jobs : int
        Workers of joblib.
    """

    directory: Path
    jobs: int

    def __call__(
        self, settings: Mapping[str, Any], strategies: Any, repeats: int, seed: int
    ) -> Any:
        """Return a comparison without a progress bar; results of :meth:`run` are in its store."""
        import pandas as pd

        tables = [
            self._compare(Comparison(name, setting, strategies), repeats, seed, False)
            for name, setting in settings.items()
        ]
        return pd.concat(tables, ignore_index=True)

    def run(
        self, comparisons: Iterable[Comparison], repeats: int, seed: int
    ) -> dict[str, tuple[int, int]]:
        """Run all comparisons, with one progress bar.

        Stores are opened before anything is computed, so that one of another study is refused at
        once.  The first data sets of every setting come first: then the cost of each setting, and
        so the remaining time, is known.

        Returns
        -------
        dict
            The numbers of computed and of stored data sets, by setting.
        """
        from joblib import effective_n_jobs  # type: ignore[import-untyped]

        self.directory.mkdir(parents=True, exist_ok=True)
        plan = {digest(each.setting): each for each in united(comparisons)}
        missing = {key: self._remaining(each, repeats, seed) for key, each in plan.items()}
        ahead = Ahead(dict(missing))
        with Steps() as steps:
            steps.expect(sum(missing.values()))
            for upto in sorted({min(max(2, effective_n_jobs(self.jobs)), repeats), repeats}):
                for key, each in plan.items():
                    if not ahead.left[key]:
                        continue
                    steps.say(label(each))
                    ahead.begin()

                    def count(done: int, total: int, key: str = key) -> None:
                        steps.step(ahead.after_one_more(key))

                    self._compare(each, upto, seed, count)
        found: dict[str, tuple[int, int]] = {}
        for key, each in plan.items():
            computed, stored = found.get(label(each), (0, 0))
            found[label(each)] = computed + missing[key], stored + repeats - missing[key]
        return found

    def _store(self, comparison: Comparison, seed: int) -> Path:
        name = f"{comparison.name}-{digest(comparison.setting)[:12]}-{seed}.sqlite"
        return self.directory / name

    def _remaining(self, each: Comparison, repeats: int, seed: int) -> int:
        store = self._store(each, seed)
        setting = {each.name: each.setting}
        return remaining(setting, each.strategies, repeats, seed, store=store, risk="gibbs")

    def _compare(self, each: Comparison, repeats: int, seed: int, progress: Any) -> Any:
        return compare(
            {each.name: each.setting},
            each.strategies,
            repeats,
            seed,
            self.jobs,
            store=self._store(each, seed),
            risk="gibbs",
            progress=progress,
        )


def label(comparison: Comparison) -> str:
    """Return the name of the setting, and whether it is as coded."""
    coded = getattr(comparison.setting, "version", AS_STATED) == AS_CODED
    return f"{comparison.name}, as coded" if coded else comparison.name


@dataclass
class Ahead:
    """Remaining work of a run whose data sets differ in cost between settings.

    Parameters
    ----------
    left : dict
        Number of data sets of each setting that are still to be computed.
    """

    left: dict[str, int]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    _last: float = 0.0

    def begin(self) -> None:
        """Start the time of the next data set."""
        self._last = time.perf_counter()

    def after_one_more(self, setting: str) -> float:
        """Count a data set of this setting as done, and return the remaining seconds."""
        now = time.perf_counter()
        self.seconds.setdefault(setting, []).append(now - self._last)
        self._last = now
        self.left[setting] -= 1
        return expected_seconds(self.left, self.seconds)


def expected_seconds(left: Mapping[str, int], seconds: Mapping[str, list[float]]) -> float:
    """Return the expected time of the remaining data sets, each at its setting's mean time.

    A setting without a finished data set is assumed to cost the average of the others.

    Examples
    --------
    >>> expected_seconds({"a": 10, "b": 2, "c": 1}, {"a": [0.5, 1.5], "b": [4.0]})
    20.5
    """
    costs = {label: sum(measured) / len(measured) for label, measured in seconds.items()}
    usual = sum(costs.values()) / len(costs)
    return sum(count * costs.get(label, usual) for label, count in left.items())
