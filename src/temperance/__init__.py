"""Calibrate the temperature of Gibbs posteriors from the data at hand."""

from temperance import models, strategies
from temperance.calibrate import calibrate, expected_risk
from temperance.calibration import Calibration

__all__ = ["Calibration", "calibrate", "expected_risk", "models", "strategies"]
