r"""The settings of the thesis, as stated in its text and as in its published code."""

from __future__ import annotations

from temperance.checks import one_of
from temperance_studies.settings.logistic import ClusteredLogisticSetting, LogisticSetting
from temperance_studies.settings.noise import GaussianNoise, MixtureNoise, SummedNoise, UniformNoise
from temperance_studies.settings.settings import (
    LinearSetting,
    MeanSetting,
    PolynomialSetting,
    Setting,
    UnknownVarianceSetting,
    Version,
)

LINEAR = ((40, 40, 8.0), (100, 20, 4.0), (100, 20, 20.0), (40, 40, 16.0), (16, 40, 0.2))


def thesis_settings(version: Version = "as-stated", seed: int = 0) -> dict[str, Setting]:
    """Return the settings of the thesis, by short identifiers.

    ``as-coded`` has the data of the published code, which differ from the text: the number that the
    text calls a variance is the standard deviation of the noise (64 where the model has 8); mixture
    noise is a sum of draws; the polynomial's test responses have no noise; logistic data come from
    clusters, and the test clusters differ from the training clusters.  Errors of its algorithms are
    not in the data; :class:`temperance_studies.thesis.safe_bayes.SafeBayesAsCoded` is one of them.
    Uniform noise, and its setting, are the same in both versions.

    Parameters
    ----------
    version : {"as-stated", "as-coded"}
    seed : int
        Seed of the true coefficients of each setting.

    References
    ----------
    .. [1] L. Perrotta, Practical calibration of the temperature parameter in Gibbs posteriors,
       2020, arXiv:2004.10522.

    Examples
    --------
    >>> thesis_settings()["linear-40-40-8"].name
    'linear 40 x 40, variance 8'
    """
    one_of("version", version, ("as-stated", "as-coded"))
    as_coded = version == "as-coded"
    settings: dict[str, Setting] = {}

    def gaussian(number: float) -> GaussianNoise:
        return GaussianNoise(number**2 if as_coded else number)

    for n, d, variance in LINEAR:
        settings[f"linear-{n}-{d}-{variance:g}"] = LinearSetting(
            n, d, gaussian(variance), variance, seed=seed, version=version
        )
    settings["mean-40-4"] = MeanSetting(40, gaussian(4.0), 4.0, seed=seed, version=version)
    settings["polynomial"] = PolynomialSetting(
        30, 12, gaussian(0.5), 0.01, noisy_test=not as_coded, version=version
    )
    settings["unknown-gaussian"] = UnknownVarianceSetting(
        60, 40, gaussian(3.5), seed=seed, version=version
    )
    settings["unknown-mixture"] = UnknownVarianceSetting(
        60,
        40,
        SummedNoise(0.1**2, 12.0**2) if as_coded else MixtureNoise(0.1, 12.0),
        seed=seed,
        version=version,
    )
    settings["unknown-uniform"] = UnknownVarianceSetting(60, 40, UniformNoise(4.5), seed=seed)
    for approximation in ("jaakkola", "mean-field"):
        kind = ClusteredLogisticSetting if as_coded else LogisticSetting
        settings[f"logistic-{approximation}"] = kind(50, 30, approximation, seed=seed)
    return settings
