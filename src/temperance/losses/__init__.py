"""Losses of a linear predictor, each with its expectation under a Gaussian."""

from temperance.losses.logistic import Logistic

__all__ = ["Logistic"]
