r"""Performance of the strategies in the thesis' settings: data of boxplots and curves.

All comparisons use one callable, so that figures of the same setting share its results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from temperance import expected_risk
from temperance.data import Array
from temperance_studies.settings import Version, least_risk
from temperance_studies.study.plan import Comparison
from temperance_studies.study.strategies import STRATEGIES
from temperance_studies.thesis.constant import without_constant

COLUMNS = ("version", "part", "setting", "strategy", "repetition", "beta", "risk")
BOUND = 3.0
# More points near 0, where curves are steep.
BETAS = BOUND * np.linspace(0.0, 1.0, 121) ** 2


# The thesis' strategies keep alpha; ours keep beta.
OF_THE_THESIS = ("naive", "sample-splitting, alpha", "bootstrap", "safe-bayes, alpha", "bayes")
OURS = ("k-fold", "leave-one-out")
ORACLE = "oracle"


def comparison(
    name: str, seed: int, version: Version, extra: Mapping[str, Any] | None = None
) -> Comparison:
    """Return the comparison of a setting: the strategies of figures, and extra ones."""
    from temperance_studies.thesis.settings import thesis_settings

    rules = {each: STRATEGIES[each] for each in (*OF_THE_THESIS, *OURS)} | dict(extra or {})
    return Comparison(name, thesis_settings(version, seed)[name], rules)


def comparisons_in(
    names: tuple[str, ...], extra: Mapping[str, Any] | None = None
) -> Callable[[int, Version], list[Comparison]]:
    """Return the comparisons that :func:`performance` uses in these settings."""
    return lambda seed, version: [comparison(name, seed, version, extra) for name in names]


def performance(
    names: tuple[str, ...],
    repeats: int,
    seed: int,
    version: Version,
    compare: Any,
    extra: Mapping[str, Any] | None = None,
) -> Any:
    """Return risks of every strategy and of the oracle in some settings, and least risks.

    Rows of part "risk" are one choice each; the one of part "least" is the minimal prediction
    error of its setting.  All risks are as in the thesis.
    """
    import pandas as pd

    parts = []
    # One setting at a time: a store belongs to one study, and figures share settings.
    for name in names:
        _, setting, rules = comparison(name, seed, version, extra)
        found = compare({name: setting}, rules, repeats=repeats, seed=seed)
        choices = found[["setting", "strategy", "repetition", "beta", "risk"]]
        oracle = found.drop_duplicates("repetition").assign(
            strategy=ORACLE, beta=lambda t: t.best_beta, risk=lambda t: t.best_risk
        )[choices.columns]
        least = pd.DataFrame({"part": ["least"], "setting": [name], "risk": [least_risk(setting)]})
        for each in (choices.assign(part="risk"), oracle.assign(part="risk"), least):
            parts.append(each.assign(risk=without_constant(setting, each.risk)))
    return pd.concat(parts, ignore_index=True)


def data_set(setting: Any, repetition: int, seed: int) -> tuple[Any, Array]:
    """Return the data set of a comparison with this seed at this repetition."""
    from temperance_studies.study.identity import digest, generator

    return setting.draw(generator(seed, repetition, digest(setting)))


def curves(
    name: str, setting: Any, data: tuple[Any, Array], repetition: int, betas: Array = BETAS
) -> Any:
    """Return generalisation and empirical error of one data set on a grid of betas."""
    import pandas as pd

    from temperance_studies.settings import true_risk

    risks = {
        "generalisation": true_risk(setting, *data, betas * len(data[1])),
        "empirical": expected_risk(setting.model, data, data, betas * len(data[1]), risk="gibbs"),
    }
    same = {"setting": name, "repetition": repetition, "beta": betas}
    return pd.concat(
        [
            pd.DataFrame({"part": part, **same, "risk": without_constant(setting, risk)})
            for part, risk in risks.items()
        ],
        ignore_index=True,
    )


def first_curves(name: str, risks: Any, seed: int, version: Version) -> Any:
    """Return curves of the first data set of a comparison, and the choices there."""
    import pandas as pd

    from temperance_studies.thesis.settings import thesis_settings

    setting = thesis_settings(version, seed)[name]
    data = data_set(setting, 0, seed)
    choices = risks[(risks.part == "risk") & (risks.repetition == 0)].assign(part="choice")
    return pd.concat([curves(name, setting, data, 0), choices], ignore_index=True)
