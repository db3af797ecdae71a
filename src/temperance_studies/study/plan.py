r"""Comparisons planned for a run: one for each setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from temperance_studies.settings import Setting
from temperance_studies.study.identity import digest
from temperance_studies.study.strategies import Choice


class Comparison(NamedTuple):
    """Strategies to compare in one setting."""

    name: str
    setting: Setting
    strategies: Mapping[str, Choice]


def united(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Return the comparisons with those of the same setting joined; each data set is drawn once.

    Examples
    --------
    >>> from temperance_studies.settings import GaussianNoise, MeanSetting
    >>> from temperance.strategies import Bayes, Naive
    >>> mean = MeanSetting(40, GaussianNoise(4.0), 4.0)
    >>> (joined,) = united(
    ...     [Comparison("mean", mean, {"bayes": Bayes()}), Comparison("mean", mean, {"n": Naive()})]
    ... )
    >>> list(joined.strategies)
    ['bayes', 'n']
    """
    found: dict[str, Comparison] = {}
    for each in comparisons:
        known = found.setdefault(digest(each.setting), each)
        found[digest(each.setting)] = known._replace(
            strategies={**known.strategies, **each.strategies}
        )
    return list(found.values())
