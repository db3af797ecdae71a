"""Losses of a linear predictor, each with its expectation under a Gaussian."""

from temperance.losses.base import Forces, Loss, Partials, Predictor, Quadratic
from temperance.losses.expectile import Expectile
from temperance.losses.hinge import Hinge
from temperance.losses.huber import Huber
from temperance.losses.logistic import Logistic
from temperance.losses.negative_binomial import NegativeBinomial
from temperance.losses.pinball import Pinball
from temperance.losses.poisson import Poisson
from temperance.losses.probit import Probit
from temperance.losses.squared import Squared
from temperance.losses.student import StudentT
from temperance.losses.tukey import Tukey

__all__ = [
    "Expectile",
    "Forces",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "NegativeBinomial",
    "Partials",
    "Pinball",
    "Poisson",
    "Predictor",
    "Probit",
    "Quadratic",
    "Squared",
    "StudentT",
    "Tukey",
]
