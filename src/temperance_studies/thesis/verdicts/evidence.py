r"""The numbers that decide claims: the study of both versions, and smaller computations.

Everything is computed on first use, and only once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from temperance.checks import whole
from temperance.data import Array
from temperance_studies.settings import AS_CODED, VERSIONS
from temperance_studies.study.plan import Comparison
from temperance_studies.thesis.constant import without_constant
from temperance_studies.thesis.verdicts import estimates
from temperance_studies.thesis.verdicts.estimates import Estimate
from temperance_studies.thesis.verdicts.strategies import BAYES, compared

if TYPE_CHECKING:
    import pandas as pd

    from temperance_studies.settings import Setting
    from temperance_studies.thesis.verdicts.bands import Coverage
    from temperance_studies.thesis.verdicts.convergence import Convergence
    from temperance_studies.thesis.verdicts.variational import Variational

Compare = Callable[..., "pd.DataFrame"]


class Evidence:
    """All measurements.

    Parameters
    ----------
    compare : callable
        ``compare(settings, strategies, repeats=, seed=)`` as
        :func:`temperance_studies.study.compare`; with a store, other users of the study
        share its results.
    repeats : int
        Data sets of each setting, at least 2.
    seed : int
    """

    def __init__(self, compare: Compare, repeats: int, seed: int) -> None:
        self.repeats = whole("repeats", repeats, 2)
        self.seed = whole("seed", seed, 0)
        self._compare = compare
        self._tables: dict[Hashable, pd.DataFrame] = {}
        self.seconds: dict[str, float] = {}
        self._columns: dict[tuple[str, str, str, str], Array] = {}

    def compare(self, comparison: Comparison) -> Any:
        """Return a comparison with the evidence's repeats and seed, computed once."""
        key = (comparison.name, comparison.setting, *comparison.strategies)
        if key not in self._tables:
            self._tables[key] = self._compare(
                {comparison.name: comparison.setting},
                comparison.strategies,
                repeats=self.repeats,
                seed=self.seed,
            )
        return self._tables[key]

    def gather(self) -> dict[str, float]:
        """Compute all expensive parts now; return the seconds of each."""
        work: dict[str, Callable[[], Any]] = {
            "comparisons": lambda: [self.compare(each) for each in planned(self.seed)],
            "variational posteriors": lambda: self.variational,
            "steps to convergence": lambda: self.convergence,
            "bands of the polynomial": lambda: self.coverage,
        }
        for name, compute in work.items():
            began = time.perf_counter()
            compute()
            self.seconds[name] = time.perf_counter() - began
        return self.seconds

    @cached_property
    def _settings(self) -> dict[str, dict[str, Setting]]:
        return settings_of(self.seed)

    def settings(self, version: str) -> dict[str, Setting]:
        """Return the settings of a version; as coded only those that differ from the text."""
        return self._settings[version]

    def present(self, keys: Iterable[str] | None = None) -> list[tuple[str, str]]:
        """Return version and key of each setting, or of those with these keys."""
        return [
            (version, key)
            for version in VERSIONS
            for key in self.settings(version)
            if keys is None or key in tuple(keys)
        ]

    def _study(self, version: str, key: str) -> pd.DataFrame:
        return self.compare(Comparison(key, self.settings(version)[key], compared(key)))

    @cached_property
    def table(self) -> pd.DataFrame:
        """The whole study, with a column ``version``; it is run on first use."""
        import pandas as pd

        return pd.concat(
            [
                self._study(version, key).assign(version=version, setting=key)
                for version, key in self.present()
            ],
            ignore_index=True,
        )

    def values(self, version: str, key: str, strategy: str, name: str) -> Array:
        """Return one column of the study, in the order of repetitions; risks as in the thesis."""
        place = (version, key, strategy, name)
        if place not in self._columns:
            found = column(self._study(version, key), strategy, name)
            if name in ("risk", "best_risk"):
                found = without_constant(self.settings(version)[key], found)
            self._columns[place] = found
        return self._columns[place]

    def difference(self, version: str, key: str, one: str, other: str) -> Estimate:
        """Return the risk of one strategy minus that of another, paired."""
        risks = [self.values(version, key, name, "risk") for name in (one, other)]
        return estimates.of_mean(risks[0] - risks[1])

    def relative(self, version: str, key: str, one: str, other: str) -> Estimate:
        """Return the paired difference of risks, relative to the other strategy's mean risk."""
        risks = [self.values(version, key, name, "risk") for name in (one, other)]
        return estimates.of_ratio(risks[0] - risks[1], risks[1])

    def relative_excess(self, version: str, key: str, strategy: str) -> Estimate:
        """Return the excess risk, relative to the least risk of any beta."""
        excess, best = (
            self.values(version, key, strategy, name) for name in ("excess", "best_risk")
        )
        return estimates.of_ratio(excess, best)

    def ratio(self, version: str, key: str, one: str, other: str = BAYES) -> Estimate:
        """Return the ratio of mean excess risks, paired."""
        excess = [self.values(version, key, name, "excess") for name in (one, other)]
        return estimates.of_ratio(*excess)

    def beta(self, version: str, key: str, strategy: str) -> Estimate:
        """Return the median choice."""
        return estimates.of_median(self.values(version, key, strategy, "beta"))

    def best_beta(self, version: str, key: str) -> Estimate:
        """Return the median of the best beta."""
        return estimates.of_median(self.values(version, key, BAYES, "best_beta"))

    def speed(self, version: str, key: str, one: str, other: str) -> Estimate:
        """Return the median of the paired ratios of seconds."""
        seconds = [self.values(version, key, name, "seconds") for name in (one, other)]
        return estimates.of_median(seconds[0] / seconds[1])

    def extreme(
        self, version: str, key: str, strategies: Iterable[str], worst: bool = False
    ) -> str:
        """Return which of these strategies has the smallest, or the largest, mean risk."""
        pick = max if worst else min
        return pick(
            strategies, key=lambda name: float(self.values(version, key, name, "risk").mean())
        )

    def data(self, version: str, key: str, count: int) -> list[tuple[Any, Array]]:
        """Return data sets that are independent of the study's."""
        coded = int(version == AS_CODED)
        letters = list(key.encode())
        return [
            self.settings(version)[key].draw(
                np.random.default_rng([self.seed, repetition, coded, *letters])
            )
            for repetition in range(count)
        ]

    @cached_property
    def variational(self) -> dict[str, Variational]:
        """The two variational posteriors on the same data, by version."""
        from temperance_studies.thesis.verdicts.variational import variational

        return {version: variational(self, version) for version in VERSIONS}

    @cached_property
    def convergence(self) -> Convergence:
        """Accuracy after a fixed number of steps."""
        from temperance_studies.thesis.verdicts.convergence import convergence

        return convergence(self)

    @cached_property
    def coverage(self) -> dict[str, Coverage]:
        """Coverage of the bands of the polynomial, by version."""
        from temperance_studies.thesis.verdicts.bands import coverage

        return {version: coverage(self, version) for version in VERSIONS}


def settings_of(seed: int) -> dict[str, dict[str, Setting]]:
    """Return the thesis' settings by version; as coded only those that differ from the text."""
    from temperance_studies.thesis.settings import thesis_settings

    return {
        version: {
            key: setting
            for key, setting in thesis_settings(version, seed).items()
            if getattr(setting, "version", version) == version
        }
        for version in VERSIONS
    }


def planned(seed: int) -> list[Comparison]:
    """Return all comparisons of the evidence: the study, and the sweeps."""
    from temperance_studies.thesis.verdicts import sweeps

    study = [
        Comparison(key, setting, compared(key))
        for settings in settings_of(seed).values()
        for key, setting in settings.items()
    ]
    return [*study, *sweeps.comparisons(seed)]


def column(table: pd.DataFrame, strategy: str, name: str) -> Array:
    """Return one column of a comparison for one strategy, in the order of repetitions."""
    rows = np.flatnonzero(np.asarray(table["strategy"]) == strategy)
    order = np.argsort(np.asarray(table["repetition"])[rows])
    return np.asarray(table[name], dtype=float)[rows[order]]


def evidence(compare: Compare, repeats: int = 30, seed: int = 0) -> Evidence:
    """Return the evidence of a study with this number of repetitions; this runs the study.

    Parameters
    ----------
    compare, repeats, seed
        As in :class:`Evidence`.
    """
    found = Evidence(compare, repeats, seed)
    found.gather()
    return found
