"""Losses of a linear predictor, each with its expectation under a Gaussian."""

from temperance.losses.base import Loss
from temperance.losses.logistic import Logistic

__all__ = ["Logistic", "Loss"]
