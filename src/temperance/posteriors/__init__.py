"""Posteriors: sample, log_prob, summaries, predictive."""

from temperance.posteriors.covariance_root import CovarianceRoot, LowRankRoot
from temperance.posteriors.gaussian import (
    GaussianPosterior,
    GaussianRegressionPosterior,
    LogisticPosterior,
)
from temperance.posteriors.normal_inverse_gamma import NormalInverseGammaPosterior
from temperance.posteriors.softmax import SoftmaxPosterior
from temperance.posteriors.student import StudentT

__all__ = [
    "CovarianceRoot",
    "GaussianPosterior",
    "GaussianRegressionPosterior",
    "LogisticPosterior",
    "LowRankRoot",
    "NormalInverseGammaPosterior",
    "SoftmaxPosterior",
    "StudentT",
]
