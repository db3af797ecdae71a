"""Calibrate the temperature of Gibbs posteriors from the data at hand."""

from temperance import models, strategies
from temperance.calibrate import calibrate, expected_risk
from temperance.calibration import Calibration

__all__ = ["Calibration", "calibrate", "expected_risk", "models", "strategies"]


def __getattr__(name: str) -> str:
    """Look the version up when it is asked for."""
    if name == "__version__":
        from importlib.metadata import version

        return version("temperance")
    raise AttributeError(f"module 'temperance' has no attribute {name!r}")
