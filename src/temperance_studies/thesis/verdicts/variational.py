r"""Jaakkola's and the mean-field posterior on the same data: risks and slopes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from temperance.calibrate import expected_risk
from temperance.checks import as_data
from temperance.data import Array
from temperance_studies.settings import best_beta, true_risk
from temperance_studies.thesis.figures.covariance_rule import CovarianceRule, covariance_zero
from temperance_studies.thesis.figures.performance import BOUND

if TYPE_CHECKING:
    from temperance_studies.thesis.verdicts.evidence import Evidence

JAAKKOLA, MEAN_FIELD = "logistic-jaakkola", "logistic-mean-field"
KEYS = (JAAKKOLA, MEAN_FIELD)
DATA_SETS = 10
BETAS = (0.5, 1.0, 2.0, 3.0)
SLOPE_DRAWS = 20_000


@dataclass(frozen=True, eq=False)
class Variational:
    """Results of each posterior, by key: arrays over the same data sets.

    Parameters
    ----------
    generalisation, empirical : arrays of shape (data sets, len(BETAS))
        True and training risk.
    best, best_risk : arrays of shape (data sets,)
        The best beta in [0, 3] and its risk.
    slope_error : arrays of shape (data sets,)
        Relative error of -Cov[r_n, r_n] as slope of the training risk at beta = 1.
    zero, zero_risk : arrays of shape (data sets,)
        Zero of the covariance with the true risk in [0, 3], by the rule of the figure of this claim
        (:class:`figures.covariance_rule.CovarianceRule`), and the true risk there.
    """

    generalisation: dict[str, Array]
    empirical: dict[str, Array]
    best: dict[str, Array]
    best_risk: dict[str, Array]
    slope_error: dict[str, Array]
    zero: dict[str, Array]
    zero_risk: dict[str, Array]


def variational(evidence: Evidence, version: str) -> Variational:
    """Return the results on up to ten data sets, which both posteriors share."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    count = min(evidence.repeats, DATA_SETS)
    data = evidence.data(version, JAAKKOLA, count)
    settings = evidence.settings(version)
    found = iter(
        Parallel()(
            delayed(_measured)(settings[key], X, y, [evidence.seed, repetition])
            for key in KEYS
            for repetition, (X, y) in enumerate(data)
        )
    )
    by_key = {key: [next(found) for _ in data] for key in KEYS}
    return Variational(
        **{
            name: {key: np.array([each[name] for each in by_key[key]]) for key in KEYS}
            for name in Variational.__dataclass_fields__
        }
    )


def _measured(setting: Any, X: Array, y: Array, seed: list[int]) -> dict[str, Any]:
    model, n, rng = setting.model, len(y), np.random.default_rng([*seed, SLOPE_DRAWS])
    alphas = n * np.array(BETAS)
    best = best_beta(setting, X, y)
    exact, covariance = (
        expected_risk(
            model, (X, y), (X, y), float(n), risk="gibbs", derivative=True, gradient=gradient,
            n_draws=SLOPE_DRAWS, seed=rng,
        )[1]
        for gradient in ("exact", "covariance")
    )  # fmt: skip
    draws, other = CovarianceRule.draws, int(rng.integers(2**32))
    zero = covariance_zero(setting, as_data(X, y), (0.0, BOUND), draws, other).beta
    return {
        "generalisation": true_risk(setting, X, y, alphas),
        "empirical": expected_risk(model, (X, y), (X, y), alphas, risk="gibbs"),
        "best": best,
        "best_risk": float(true_risk(setting, X, y, best * n)),
        "slope_error": abs(covariance - exact) / abs(exact),
        "zero": zero,
        "zero_risk": float(true_risk(setting, X, y, zero * n)),
    }
