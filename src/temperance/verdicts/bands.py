r"""What the polynomial's predictive bands cover: the function itself, area by area."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from temperance.calibrate import calibrate
from temperance.diagnostics import TemperanceWarning
from temperance.strategies import SampleSplitting
from temperance.types import Array

if TYPE_CHECKING:
    from temperance.verdicts.evidence import Evidence

KEY = "polynomial"
AREAS = {
    "left": np.linspace(-2.5, -1.0, 61),
    "middle": np.linspace(-1.0, 1.0, 81),
    "right": np.linspace(1.0, 2.5, 61),
}
# Of each choice and area, the share of points where the band holds the function, by repetition.
Coverage = dict[tuple[str, str], Array]


def coverage(evidence: Evidence, version: str) -> Coverage:
    """Cover f(x) by mean ± 2 deviations of the predictive at three choices of beta.

    The choices are sample splitting's (holding alpha), Bayes', and the limit of least squares.
    """
    setting: Any = evidence.settings(version)[KEY]
    model, found = setting.model, {}
    for repetition, (X, y) in enumerate(evidence.data(version, KEY, evidence.repeats)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TemperanceWarning)  # a choice may lie at a bound
            split = calibrate(model, X, y, SampleSplitting(transfer="alpha")).posterior
        fits = {"sample splitting": split, "Bayes": model.posterior(X, y, float(len(y)))}
        least_squares = np.linalg.lstsq(model.design(X), y, rcond=None)[0]
        for area, x in AREAS.items():
            for name, posterior in fits.items():
                mean, deviation = posterior.predict(x)
                found[name, area, repetition] = (mean, deviation)
            noise = np.full(len(x), np.sqrt(model.noise_variance))
            found["least squares", area, repetition] = (model.design(x) @ least_squares, noise)
    return {
        (name, area): np.array(
            [
                _covered(*found[name, area, repetition], setting.truth(AREAS[area]))
                for repetition in range(evidence.repeats)
            ]
        )
        for name in ("sample splitting", "Bayes", "least squares")
        for area in AREAS
    }


def _covered(mean: Array, deviation: Array, truth: Array) -> float:
    return float(np.mean(np.abs(mean - truth) <= 2 * deviation))
