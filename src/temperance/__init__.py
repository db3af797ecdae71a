"""How much should a posterior trust its likelihood?"""

from temperance import models, strategies
from temperance.calibrate import calibrate, expected_risk
from temperance.calibration import Calibration

__all__ = ["Calibration", "calibrate", "expected_risk", "models", "strategies"]
