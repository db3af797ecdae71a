"""Data: settings with known true risk, and real data from other packages."""

from temperance_studies.settings.coverage import (
    COVERAGE,
    ClusterCoverage,
    CountCoverage,
    LinearCoverage,
    LinkCoverage,
    MeanCoverage,
    ParameterSetting,
    QuantileCoverage,
    parameter_of,
)
from temperance_studies.settings.logistic import ClusteredLogisticSetting, LogisticSetting
from temperance_studies.settings.noise import (
    GaussianNoise,
    MixtureNoise,
    Noise,
    StudentNoise,
    SummedNoise,
    UniformNoise,
)
from temperance_studies.settings.real import REAL, RealData, load
from temperance_studies.settings.settings import (
    AS_CODED,
    AS_STATED,
    VERSIONS,
    LinearSetting,
    MeanSetting,
    PolynomialSetting,
    Setting,
    UnknownVarianceSetting,
    Version,
)
from temperance_studies.settings.truth import (
    best_beta,
    least_risk,
    risk_of_draws,
    true_risk,
    true_risk_of_mixture,
)

__all__ = [
    "AS_CODED",
    "AS_STATED",
    "REAL",
    "VERSIONS",
    "ClusteredLogisticSetting",
    "GaussianNoise",
    "LinearSetting",
    "LogisticSetting",
    "MeanSetting",
    "MixtureNoise",
    "Noise",
    "PolynomialSetting",
    "RealData",
    "Setting",
    "StudentNoise",
    "SummedNoise",
    "UniformNoise",
    "UnknownVarianceSetting",
    "Version",
    "best_beta",
    "least_risk",
    "load",
    "risk_of_draws",
    "true_risk",
    "true_risk_of_mixture",
    "COVERAGE",
    "ClusterCoverage",
    "CountCoverage",
    "LinearCoverage",
    "LinkCoverage",
    "MeanCoverage",
    "ParameterSetting",
    "QuantileCoverage",
    "parameter_of",
]
