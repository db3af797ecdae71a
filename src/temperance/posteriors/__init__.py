"""Posteriors: sample, log_prob, summaries, predictive."""

from temperance.posteriors.gaussian import (
    GaussianPosterior,
    GaussianRegressionPosterior,
    LogisticPosterior,
)
from temperance.posteriors.normal_inverse_gamma import NormalInverseGammaPosterior
from temperance.posteriors.student import StudentT

__all__ = [
    "GaussianPosterior",
    "GaussianRegressionPosterior",
    "LogisticPosterior",
    "NormalInverseGammaPosterior",
    "StudentT",
]
