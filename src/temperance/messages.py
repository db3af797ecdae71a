"""Warnings; each message says what to do."""

from __future__ import annotations

import sys
import warnings
from typing import Any


class TemperanceWarning(UserWarning):
    """A result may be unreliable."""


class BoundWarning(TemperanceWarning):
    """The choice is at a bound; none for a Gibbs risk that is smallest at the upper bound."""


class FlatCurveWarning(TemperanceWarning):
    """The estimated risk does not depend on beta."""


class PriorWarning(TemperanceWarning):
    """The prior is not weak, where a rule for beta assumes that it is."""


class WeightWarning(TemperanceWarning):
    """The weights of rows look relative, not like counts of observations."""


class ConvergenceWarning(TemperanceWarning):
    """An iteration stopped before it reached its tolerance."""


class MixingWarning(TemperanceWarning):
    """Chains or islands of draws disagree."""


class DivergenceWarning(TemperanceWarning):
    """A sampler had divergent trajectories."""


class OverlapWarning(TemperanceWarning):
    """Draws at neighbouring betas overlap too little to be combined."""


class ParetoWarning(TemperanceWarning):
    """Importance weights for leaving a row out have too heavy a tail."""


class DrawsWarning(TemperanceWarning):
    """The draws are too few for the choice that is based on them."""


def warn(message: str, category: type[TemperanceWarning]) -> None:
    """Warn at the first line of code outside this package and its studies."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _in_package(frame.f_globals):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _in_package(names: dict[str, Any]) -> bool:
    return str(names.get("__name__", "")).startswith(("temperance.", "temperance_studies."))
