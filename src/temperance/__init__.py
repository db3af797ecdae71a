"""Calibrate the temperature of Gibbs posteriors from data."""

from typing import TYPE_CHECKING, Any

from temperance import models, strategies
from temperance.calibrate import calibrate, expected_risk
from temperance.calibration import Calibration
from temperance.models.sampled.from_draws import calibrate_from_draws

if TYPE_CHECKING:
    from temperance.estimators import GibbsClassifier as GibbsClassifier
    from temperance.estimators import GibbsRegressor as GibbsRegressor

__all__ = [
    "Calibration",
    "calibrate",
    "calibrate_from_draws",
    "expected_risk",
    "models",
    "strategies",
]

# scikit-learn is optional and slow to import: it is imported on first use.
ESTIMATORS = ("GibbsClassifier", "GibbsRegressor")


def __getattr__(name: str) -> Any:
    """Look up the estimators and the version on first use."""
    if name in ESTIMATORS:
        from temperance import estimators

        return getattr(estimators, name)
    if name == "__version__":
        from importlib.metadata import version

        return version("temperance")
    raise AttributeError(f"module 'temperance' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *ESTIMATORS, "__version__"])
