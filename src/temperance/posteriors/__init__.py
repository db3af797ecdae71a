"""Posteriors: sample, log_prob, summaries, predictive."""

from temperance.posteriors.covariance_root import CovarianceRoot, LowRankRoot
from temperance.posteriors.gaussian import (
    GaussianPosterior,
    GaussianRegressionPosterior,
    LogisticPosterior,
)
from temperance.posteriors.hierarchical import HierarchicalPosterior
from temperance.posteriors.linear_predictor import (
    ClassPosterior,
    PredictorPosterior,
    ResponseLaw,
    ResponsePosterior,
)
from temperance.posteriors.mixture import MixturePosterior
from temperance.posteriors.normal_inverse_gamma import NormalInverseGammaPosterior
from temperance.posteriors.softmax import SoftmaxPosterior

__all__ = [
    "ClassPosterior",
    "PredictorPosterior",
    "ResponseLaw",
    "ResponsePosterior",
    "CovarianceRoot",
    "GaussianPosterior",
    "GaussianRegressionPosterior",
    "HierarchicalPosterior",
    "LogisticPosterior",
    "LowRankRoot",
    "MixturePosterior",
    "NormalInverseGammaPosterior",
    "SoftmaxPosterior",
]
