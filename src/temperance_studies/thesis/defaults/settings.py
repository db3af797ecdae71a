r"""The settings used to choose the default strategy, in groups.

*thesis*: every regression of the thesis, as stated and as coded.  *other*: other numbers of rows
and columns, noise and designs.  *stress*: truths that violate the models' assumptions.  *copies*:
every row occurs more than once.  *logistic*: classifications.
"""

from __future__ import annotations

from collections.abc import Callable

from temperance_studies.settings import (
    VERSIONS,
    GaussianNoise,
    MixtureNoise,
    Setting,
    StudentNoise,
    UniformNoise,
)
from temperance_studies.study.identity import digest
from temperance_studies.thesis.inputs import BinaryRows, GaussianRows, HeavyRows
from temperance_studies.thesis.noisy_labels import NoisyLabelSetting
from temperance_studies.thesis.settings import thesis_settings
from temperance_studies.thesis.stress import StressSetting


def thesis_regressions() -> dict[str, Setting]:
    """Return the thesis' 19 different regressions: ten as stated, nine that differ as coded.

    Uniform noise is the same in both versions.
    """
    found: dict[str, Setting] = {}
    for version in VERSIONS:
        for setting in thesis_settings(version).values():
            if setting.exact and digest(setting) not in map(digest, found.values()):
                found[setting.name] = setting
    return found


def other_regressions() -> dict[str, Setting]:
    """Return 15 regressions with other rows, columns, noise and designs than the thesis'."""
    g, correlated = GaussianNoise, GaussianRows(correlation=0.8)
    heavy, binary = HeavyRows(), BinaryRows()
    return _named(
        StressSetting("20 x 5, variance 1", 20, 5, g(1.0), 1.0),
        StressSetting("30 x 10, variance 1, truth 4", 30, 10, g(4.0), 1.0),
        StressSetting("50 x 10, variance 4, truth 1", 50, 10, g(1.0), 4.0),
        StressSetting("80 x 60, variance 2", 80, 60, g(2.0), 2.0),
        StressSetting("60 x 80, variance 1, truth 4", 60, 80, g(4.0), 1.0),
        StressSetting("200 x 10, variance 1, truth 9", 200, 10, g(9.0), 1.0),
        StressSetting("200 x 100, variance 1", 200, 100, g(1.0), 1.0),
        StressSetting("50 x 20, correlated, variance 2, truth 8", 50, 20, g(8.0), 2.0, correlated),
        StressSetting("40 x 60, correlated, variance 1", 40, 60, g(1.0), 1.0, correlated),
        StressSetting("60 x 30, heavy inputs, variance 2, truth 6", 60, 30, g(6.0), 2.0, heavy),
        StressSetting("60 x 20, binary inputs, variance 1, truth 4", 60, 20, g(4.0), 1.0, binary),
        StressSetting("30 x 10, unknown variance", 30, 10, g(4.0)),
        StressSetting("100 x 50, unknown variance, uniform", 100, 50, UniformNoise(3.0)),
        StressSetting("40 x 60, unknown variance", 40, 60, g(1.0)),
        StressSetting("60 x 20, correlated, unknown variance", 60, 20, g(9.0), None, correlated),
    )  # fmt: skip


def stress_regressions() -> dict[str, Setting]:
    """Return 12 regressions whose truths violate the models' assumptions."""
    g = GaussianNoise
    outliers = MixtureNoise(1.0, 100.0, share=0.95)
    return _named(
        StressSetting("sparse", 60, 40, g(4.0), 2.0, coefficients="sparse"),
        StressSetting("sparse, unknown variance", 60, 40, g(4.0), coefficients="sparse"),
        StressSetting("shifted", 40, 20, g(4.0), 4.0, coefficients="shifted"),
        StressSetting("shifted, unknown variance", 40, 20, g(4.0), coefficients="shifted"),
        StressSetting("nonlinear mean", 50, 20, g(1.0), 1.0, bend=3.0),
        StressSetting("nonlinear mean, unknown variance", 50, 20, g(1.0), bend=3.0),
        StressSetting("outliers", 60, 20, outliers, 1.0),
        StressSetting("outliers, unknown variance", 60, 20, outliers),
        StressSetting("heavy tails", 50, 25, StudentNoise(6.0, 2.5), 2.0),
        StressSetting("half the rows at zero", 50, 20, g(2.0), 1.0, easy=True),
        StressSetting("10 x 5, variance 1, truth 4", 10, 5, g(4.0), 1.0),
        StressSetting("10 x 20, unknown variance", 10, 20, g(2.0)),
    )


def copied_regressions() -> dict[str, Setting]:
    """Return 3 regressions in whose data every row occurs more than once."""
    g = GaussianNoise
    return _named(
        StressSetting("copies, 80 x 20, variance 2", 80, 20, g(2.0), 2.0, copies=2),
        StressSetting("copies, 80 x 20, unknown variance", 80, 20, g(2.0), copies=2),
        StressSetting("copies, 90 x 20, variance 1, truth 4", 90, 20, g(4.0), 1.0, copies=3),
    )


def classifications() -> dict[str, Setting]:
    """Return 12 classifications: input scale, label noise, few and many rows, size of theta."""
    s = NoisyLabelSetting
    return _named(
        s(50, 30, "jaakkola"),
        s(50, 30, "laplace"),
        s(50, 30, "full-covariance"),
        s(50, 30, "mean-field"),
        s(50, 30, "laplace", scale=2.0),
        s(50, 30, "jaakkola", noise=0.5),
        s(50, 10, "laplace", size=0.2),
        s(60, 10, "laplace", size=4.0),
        s(15, 5, "laplace"),
        s(300, 20, "laplace"),
        s(200, 10, "jaakkola", noise=0.3),
        s(100, 10, "full-covariance", scale=1.0, noise=0.2),
    )


def _named(*settings: Setting) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings}


Group = Callable[[], dict[str, Setting]]

REGRESSIONS: dict[str, Group] = {
    "thesis": thesis_regressions,
    "other": other_regressions,
    "stress": stress_regressions,
    "copies": copied_regressions,
}
WITHOUT_COPIES = {name: group for name, group in REGRESSIONS.items() if name != "copies"}
CLASSIFICATIONS: dict[str, Group] = {"logistic": classifications}
