r"""Coverage of the true function by the polynomial's predictive bands, by area."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from temperance.calibrate import calibrate
from temperance.data import Array
from temperance.messages import TemperanceWarning
from temperance.strategies import SampleSplitting
from temperance_studies.thesis.figures.polynomial_bands import predictive

if TYPE_CHECKING:
    from temperance_studies.thesis.verdicts.evidence import Evidence

KEY = "polynomial"
AREAS = {
    "left": np.linspace(-2.5, -1.0, 61),
    "middle": np.linspace(-1.0, 1.0, 81),
    "right": np.linspace(1.0, 2.5, 61),
}
# Share of points where the band contains the function, by choice and area, for each repetition.
Coverage = dict[tuple[str, str], Array]


def coverage(evidence: Evidence, version: str) -> Coverage:
    """Return the coverage of f(x) by mean ± 2 predictive deviations at three choices of beta.

    The choices are sample splitting's (with alpha kept), Bayes', and the limit of least squares.
    """
    setting: Any = evidence.settings(version)[KEY]
    shares: dict[tuple[str, str], list[float]] = {}
    for X, y in evidence.data(version, KEY, evidence.repeats):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TemperanceWarning)  # a choice may lie at a bound
            split = calibrate(
                setting.model, X, y, SampleSplitting(transfer="alpha"), risk="gibbs"
            ).beta
        for name, beta in (("sample splitting", split), ("Bayes", 1.0), ("least squares", np.inf)):
            for area, x in AREAS.items():
                band = predictive(setting.model, X, y, beta, x)
                shares.setdefault((name, area), []).append(_covered(*band, setting.truth(x)))
    return {key: np.array(values) for key, values in shares.items()}


def _covered(mean: Array, deviation: Array, truth: Array) -> float:
    return float(np.mean(np.abs(mean - truth) <= 2 * deviation))
