"""What somebody who adds a model or a strategy imports, in one place.

>>> from temperance.extend import Data, HeldOut, Pairs, PlanStrategy
"""

from temperance.calibration import Calibration, Rate
from temperance.checks import as_data, as_inputs, non_negative, one_of, positive, whole
from temperance.curves import GivesCurve, RiskCurve, curve_of_losses
from temperance.data import Array, Data, Risk
from temperance.plans import AnyPlan, Folds, LeaveOneOut, Pairs, Transfer
from temperance.protocols import (
    ChecksData,
    HasCredibleLevels,
    HasInformation,
    HasNoiseVariance,
    HasPreferences,
    HasPriorInformation,
    Information,
    Model,
    NoMinimiserError,
    Posterior,
    Preferences,
    SamplingModel,
    Strategy,
)
from temperance.rules import BetaWeights, Choice, gain_of, minimum, stack
from temperance.strategies.rate import RateStrategy
from temperance.strategies.selection import PlanStrategy
from temperance.table import HeldOut, half_decades, held_out_losses, mean_and_error, scanned

__all__ = [
    "AnyPlan",
    "Array",
    "BetaWeights",
    "Calibration",
    "ChecksData",
    "Choice",
    "Data",
    "Folds",
    "GivesCurve",
    "HasCredibleLevels",
    "HasInformation",
    "HasNoiseVariance",
    "HasPreferences",
    "HasPriorInformation",
    "HeldOut",
    "Information",
    "LeaveOneOut",
    "Model",
    "NoMinimiserError",
    "Pairs",
    "PlanStrategy",
    "Posterior",
    "Preferences",
    "Rate",
    "RateStrategy",
    "Risk",
    "RiskCurve",
    "SamplingModel",
    "Strategy",
    "Transfer",
    "as_data",
    "as_inputs",
    "curve_of_losses",
    "gain_of",
    "half_decades",
    "held_out_losses",
    "mean_and_error",
    "minimum",
    "non_negative",
    "one_of",
    "positive",
    "scanned",
    "stack",
    "whole",
]
