r"""Jaakkola's and the mean-field posterior on the same data: risks and slopes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from temperance.calibrate import expected_risk
from temperance.datasets import AS_CODED, best_beta, true_risk
from temperance.types import Array

if TYPE_CHECKING:
    from temperance.verdicts.evidence import Evidence

JAAKKOLA, MEAN_FIELD = "logistic-jaakkola", "logistic-mean-field"
KEYS = (JAAKKOLA, MEAN_FIELD)
DATA_SETS = 10
BETAS = (0.5, 1.0, 2.0, 3.0)
# Where the covariance is computed to find its zero.
GRID = np.array([0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
FRESH_ROWS, SLOPE_DRAWS, GRID_DRAWS = 400, 20_000, 1_000


@dataclass(frozen=True, eq=False)
class Variational:
    """Of each posterior, by key: arrays over the same data sets.

    Parameters
    ----------
    generalisation, empirical : arrays of shape (data sets, len(BETAS))
        True and training risk.
    best, best_risk : arrays of shape (data sets,)
        The best beta in [0, 3] and its risk.
    slope_error : arrays of shape (data sets,)
        Relative error of -Cov[r_n, r_n] as slope of the training risk at beta = 1.
    zero, zero_risk : arrays of shape (data sets,)
        Where the covariance with the risk of fresh rows vanishes in [0.1, 3], and the true risk
        there.
    """

    generalisation: dict[str, Array]
    empirical: dict[str, Array]
    best: dict[str, Array]
    best_risk: dict[str, Array]
    slope_error: dict[str, Array]
    zero: dict[str, Array]
    zero_risk: dict[str, Array]


def variational(evidence: Evidence, version: str) -> Variational:
    """Compute on up to ten data sets, which both posteriors share."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    count = min(evidence.repeats, DATA_SETS)
    data = evidence.data(version, JAAKKOLA, count)
    settings, coded = evidence.settings(version), version == AS_CODED
    found = iter(
        Parallel()(
            delayed(_measured)(settings[key], X, y, [evidence.seed, repetition], coded)
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


def _measured(setting: Any, X: Array, y: Array, seed: list[int], coded: bool) -> dict[str, Any]:
    model, n, rng = setting.model, len(y), np.random.default_rng([*seed, FRESH_ROWS])
    alphas = n * np.array(BETAS)
    best = best_beta(setting, X, y)
    larger = replace(setting, n=FRESH_ROWS)
    fresh = larger.draw_test(rng) if coded else larger.draw(rng)
    exact, covariance = (
        expected_risk(
            model, (X, y), (X, y), float(n), derivative=True, gradient=gradient,
            n_draws=SLOPE_DRAWS, seed=rng,
        )[1]
        for gradient in ("exact", "covariance")
    )  # fmt: skip
    slopes = expected_risk(
        model, (X, y), fresh, n * GRID, derivative=True, gradient="covariance",
        n_draws=GRID_DRAWS, seed=rng,
    )[1]  # fmt: skip
    zero = first_zero(GRID, slopes)
    return {
        "generalisation": true_risk(setting, X, y, alphas),
        "empirical": expected_risk(model, (X, y), (X, y), alphas),
        "best": best,
        "best_risk": float(true_risk(setting, X, y, best * n)),
        "slope_error": abs(covariance - exact) / abs(exact),
        "zero": zero,
        "zero_risk": float(true_risk(setting, X, y, zero * n)),
    }


def first_zero(at: Array, slopes: Array) -> float:
    """Return where slopes first turn positive, by linear interpolation, or the end they point to.

    Examples
    --------
    >>> first_zero(np.array([0.0, 1.0, 2.0]), np.array([-2.0, -1.0, 1.0]))
    1.5
    """
    positive = np.flatnonzero(slopes >= 0)
    if len(positive) == 0:
        return float(at[-1])
    i = int(positive[0])
    if i == 0:
        return float(at[0])
    part = slopes[i - 1] / (slopes[i - 1] - slopes[i])
    return float(at[i - 1] + part * (at[i] - at[i - 1]))
