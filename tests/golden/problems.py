"""The problems, by name, and the numbers that have changed on purpose.

They use what every version has: ``calibrate`` and ``calibrate_from_draws``, models, losses and
strategies, estimators, and of a calibration its beta, curve, risk and posterior.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np

from temperance import losses, models
from temperance.strategies import (
    Bayes,
    Bootstrap,
    Coarsened,
    Coverage,
    FisherInformation,
    FittedCoverage,
    FromSplitter,
    KFold,
    LeaveOneOut,
    Naive,
    Oracle,
    PriorInformation,
    ReferenceRisk,
    SafeBayes,
    SampleSplitting,
    Sandwich,
    Stacking,
)

from . import rows as make
from .kinds import DrawsProblem, EstimatorProblem, ModelProblem, Problem
from .rows import Array, GroupsApart, Rows

# What differs from the numbers on purpose, and why: the name of a problem, or "name: quantity" for
# one quantity of it, such as "mean/reference: beta_range".  The others are still compared.
PLAIN_ERRORS = "standard errors are those over rows, not enlarged by a count of parameters"
OTHER_RANGE = f"{PLAIN_ERRORS}; the range with them"
OWN_RANGE = "the range is that of mean losses as they are, not compressed"
FLAT_LEVEL = "the intercept has a flat prior, which takes one observation from the shape a"
STACKED = "forecasts are stacked over beta, not averaged by resampled evidence"
OTHER_BLOCKS = "resamples and blocks follow the rows in order of the size of their responses"
EARLIER_ROWS = "SafeBayes tests rows after the 200th a few at a time"


def changed(why: str, quantities: str, names: str) -> dict[str, str]:
    """Return the reason for each of the quantities of each of the problems."""
    return {
        f"{name}: {quantity}" if quantity else name: why
        for name in names.split()
        for quantity in quantities.split()
    }


ON_PURPOSE: dict[str, str] = {
    **changed(
        PLAIN_ERRORS,
        "gain_standard_error",
        "linear-16-40-.2/k-fold/alpha linear-16-40-.2/safe-bayes/permuted mean/leave-one-out "
        "mean/split/predictive small/weights/fractions/leave-one-out small/diagonal-prior/k-fold "
        "small/scalar-prior/split small/safe-bayes/square small/safe-bayes/in-model "
        "small/noise-too-large/leave-one-out copies/k-fold/apart units/leave-one-out "
        "tall/leave-one-out large/k-fold hierarchical/weights/leave-one-out laplace/leave-one-out "
        "full-covariance/k-fold softmax/k-fold student-t/k-fold hierarchical/known/k-fold "
        "hierarchical/wide/k-fold classifier/forecasts regressor/forecasts/known mean/reference "
        "copies/reference few-values/reference",
    ),
    **changed(
        OTHER_RANGE,
        "beta_range gain_standard_error",
        "linear-40-40-8/k-fold linear-40-40-8/k-fold/predictive linear-40-40-8/split/alpha "
        "linear-40-40-8/bootstrap linear-40-40-8/safe-bayes/alpha linear-40-40-8/naive "
        "linear-40-40-8/oracle linear-100-20-4/leave-one-out/predictive linear-100-20-4/safe-bayes "
        "linear-100-20-20/split/predictive linear-40-40-16/leave-one-out/alpha "
        "linear-40-40-16/bootstrap/out-of-bag linear-16-40-.2/leave-one-out polynomial/k-fold "
        "polynomial/leave-one-out/predictive unknown-normal/k-fold "
        "unknown-mixture/leave-one-out/predictive unknown-uniform/safe-bayes/stride "
        "jaakkola/k-fold mean-field/k-fold/predictive small/weights/whole/k-fold "
        "small/weights/zeros/bootstrap small/weights/whole/safe-bayes "
        "small/full-prior/leave-one-out "
        "small/noise-too-small/k-fold copies/k-fold/together few-values/k-fold groups/splitter "
        "units/k-fold tall/bootstrap jaakkola/safe-bayes mean-field/split poisson/k-fold "
        "regressor/draws linear-40-40-8/reference linear-100-20-20/reference/predictive "
        "linear-16-40-.2/reference polynomial/reference unknown-normal/reference "
        "small/weights/fractions/reference",
    ),
    **changed(OTHER_RANGE, "beta_range", "huber/leave-one-out pinball/k-fold hinge/naive"),
    "poisson/k-fold: beta_range": f"{OTHER_RANGE}; {OWN_RANGE}",
    **changed(FLAT_LEVEL, "curve beta_range", "hierarchical/known/k-fold"),
    **changed(
        FLAT_LEVEL,
        "beta beta_range curve",
        "hierarchical/leave-one-out hierarchical/wide/k-fold regressor/forecasts "
        "regressor/forecasts/known",
    ),
    **changed(STACKED, "beta beta_range intervals", "linear-100-20-20/average"),
    **changed(f"{STACKED}; {FLAT_LEVEL}", "beta beta_range curve", "hierarchical/average"),
    **changed(OTHER_BLOCKS, "beta beta_range", "linear-100-20-4/coverage rates/coverage/unknown"),
    **changed(
        OTHER_BLOCKS,
        "beta_range",
        "rates/sandwich rates/sandwich/determinant rates/fisher-information "
        "rates/prior-information huber/sandwich regressor/coefficients",
    ),
    **changed(EARLIER_ROWS, "beta curve", "tall/safe-bayes"),
}

KNOWN_VARIANCE = (
    models.GaussianLinear,
    models.GaussianMean,
    models.Polynomial,
    models.HierarchicalLinear,
)


def constant_of(noise_variance: float | None) -> float:
    """Return log(2 pi s2) / 2, which curves of models of known variance left out when written."""
    return 0.0 if noise_variance is None else float(0.5 * np.log(2 * np.pi * noise_variance))


def of(
    model: Any, rows: Rows, strategy: Any, risk: Literal["gibbs", "predictive"], **options: Any
) -> Problem:
    """Return the problem of a model; ``options`` are other fields of the problem."""
    known = model.noise_variance if isinstance(model, KNOWN_VARIANCE) else None
    options.setdefault("noise_variance", known)
    options.setdefault("constant", constant_of(options["noise_variance"]))
    return ModelProblem(model=model, rows=rows, strategy=strategy, risk=risk, **options)


def estimated(name: Any, rows: Rows, strategy: Any, risk: Any, **options: Any) -> Problem:
    """Return the problem of an estimator; ``about`` holds fields of the problem."""
    about = options.pop("about", {})
    return EstimatorProblem(
        name=name, rows=rows, strategy=strategy, risk=risk, options=options, **about
    )


def covariance(d: int, size: float = 1.0) -> Array:
    """Return a prior covariance with correlations."""
    root = np.random.default_rng(d).standard_normal((d, d))
    return size * (np.eye(d) + root @ root.T / d)


# Looser tolerances: of posteriors by Newton's method and losses by quadrature, whose ranges are
# found in few steps; of weights of betas that are simulated; of a beta found by halving intervals.
FITTED: dict[str, Any] = {"rtol": 1e-6, "range_rtol": 0.1}
AVERAGED: dict[str, Any] = {"rtol": 1e-6}
RESAMPLED: dict[str, Any] = {"beta_rtol": 1e-3}

# The settings of the thesis.
LINEAR_8 = make.linear(40, 40, make.normal(8.0), seed=1)
LINEAR_4 = make.linear(100, 20, make.normal(4.0), seed=2)
LINEAR_20 = make.linear(100, 20, make.normal(20.0), seed=3)
LINEAR_16 = make.linear(40, 40, make.normal(16.0), seed=4)
WIDE = make.linear(16, 40, make.normal(0.2), seed=5)
MEAN = make.around_a_mean(40, 4.0, seed=6)
PARABOLA = make.parabola(30, 0.5, seed=7)
UNKNOWN_NORMAL = make.linear(60, 40, make.normal(3.5), 0.5, seed=8)
UNKNOWN_MIXTURE = make.linear(60, 40, make.mixture, 0.5, seed=9)
UNKNOWN_UNIFORM = make.linear(60, 40, make.uniform, 0.5, seed=10)
LABELS = make.labels(50, 30, seed=11)

linear = models.GaussianLinear
on_8, on_4 = partial(of, linear(8.0), LINEAR_8), partial(of, linear(4.0), LINEAR_4)
on_20, on_16 = partial(of, linear(20.0), LINEAR_20), partial(of, linear(16.0), LINEAR_16)
on_wide = partial(of, linear(0.2), WIDE)
on_mean = partial(of, models.GaussianMean(4.0), MEAN)
on_parabola = partial(of, models.Polynomial(12, 0.01), PARABOLA)
FRESH = make.linear(300, 40, make.normal(8.0), seed=12)
unknown = models.NormalInverseGammaLinear

THESIS = {
    "linear-40-40-8/k-fold": on_8(KFold(10), "gibbs"),
    "linear-40-40-8/k-fold/predictive": on_8(KFold(10), "predictive"),
    "linear-40-40-8/split/alpha": on_8(SampleSplitting("alpha"), "gibbs"),
    "linear-40-40-8/bootstrap": on_8(Bootstrap(100), "gibbs", bounds=(0.0, 20.0)),
    "linear-40-40-8/safe-bayes/alpha": on_8(SafeBayes("alpha"), "gibbs"),
    "linear-40-40-8/reference": on_8(ReferenceRisk(), "gibbs"),
    "linear-40-40-8/naive": on_8(Naive(), "gibbs"),
    "linear-40-40-8/bayes": on_8(Bayes(), "gibbs"),
    "linear-40-40-8/oracle": on_8(Oracle(FRESH.X, FRESH.y), "gibbs"),
    "linear-100-20-4/leave-one-out/predictive": on_4(LeaveOneOut(), "predictive"),
    "linear-100-20-4/safe-bayes": on_4(SafeBayes(), "gibbs", bounds=(0.0, 20.0)),
    "linear-100-20-4/coverage": on_4(Coverage(n_draws=100), "gibbs", **RESAMPLED),
    "linear-100-20-20/split/predictive": on_20(
        SampleSplitting("beta", shuffle=True, both_directions=True, repeats=3), "predictive", seed=5
    ),
    "linear-100-20-20/reference/predictive": on_20(ReferenceRisk(), "predictive"),
    "linear-100-20-20/average": on_20(Stacking(LeaveOneOut()), "predictive", **AVERAGED),
    "linear-40-40-16/leave-one-out/alpha": on_16(LeaveOneOut("alpha"), "gibbs", bounds=(0.1, 20.0)),
    "linear-40-40-16/bootstrap/out-of-bag": on_16(Bootstrap(80, out_of_bag=True), "predictive"),
    "linear-16-40-.2/k-fold/alpha": on_wide(KFold(8, "alpha"), "predictive", seed=3),
    "linear-16-40-.2/leave-one-out": on_wide(LeaveOneOut(), "gibbs"),
    "linear-16-40-.2/reference": on_wide(ReferenceRisk(), "gibbs"),
    "linear-16-40-.2/safe-bayes/permuted": on_wide(
        SafeBayes(start=3, permutations=3), "predictive", seed=2
    ),
    "mean/leave-one-out": on_mean(LeaveOneOut(), "gibbs"),
    "mean/split/predictive": on_mean(SampleSplitting(), "predictive"),
    "mean/reference": on_mean(ReferenceRisk(veto=1.0), "gibbs"),
    "polynomial/k-fold": on_parabola(KFold(10), "gibbs"),
    "polynomial/leave-one-out/predictive": on_parabola(LeaveOneOut(), "predictive"),
    "polynomial/reference": on_parabola(ReferenceRisk(), "gibbs"),
    "unknown-normal/k-fold": of(unknown(), UNKNOWN_NORMAL, KFold(10), "gibbs"),
    "unknown-normal/reference": of(unknown(), UNKNOWN_NORMAL, ReferenceRisk(), "gibbs"),
    "unknown-mixture/leave-one-out/predictive": of(
        unknown(), UNKNOWN_MIXTURE, LeaveOneOut(), "predictive"
    ),
    "unknown-mixture/bayes/predictive": of(unknown(), UNKNOWN_MIXTURE, Bayes(), "predictive"),
    "unknown-uniform/safe-bayes/stride": of(
        unknown(), UNKNOWN_UNIFORM, SafeBayes(start=20, stride=5), "gibbs"
    ),
    "jaakkola/k-fold": of(models.JaakkolaLogistic(), LABELS, KFold(5), "gibbs", **FITTED),
    "mean-field/k-fold/predictive": of(
        models.MeanFieldLogistic(), LABELS, KFold(5), "predictive", **FITTED
    ),
}

# Weights, copies, groups, priors, units, bounds and sizes.
SMALL = make.linear(30, 6, make.heavy(4.0), seed=20)
WHOLE = SMALL.with_weights(1.0 + np.arange(30) % 3)
FRACTIONS = SMALL.with_weights(np.random.default_rng(21).uniform(0.2, 1.7, 30))
SOME_ZERO = SMALL.with_weights(np.arange(30) % 4)
COPIES = SMALL.repeated(1 + (np.arange(30) % 5 == 0) * 2)
FEW_VALUES = make.few_values(60, seed=22)
LABELS_OF_GROUPS = np.repeat(np.arange(24), 3)
GROUPED = make.linear(72, 3, make.in_groups(24), seed=23)
UNITS = np.array([1.0, 1e-5, 1e6, 3e2, 1e-2, 20.0])
IN_UNITS = SMALL.in_units(UNITS, 1e4)
PRIOR_OF_UNITS = (1e4 / UNITS) ** 2
TALL = make.linear(2500, 4, make.heavy(12.0), seed=24)
LARGE = make.linear(14000, 10, make.normal(1e3), seed=25)
SHIFT = np.array([0.5, -1.0, 2.0, 0.0, -0.3, 0.7])
VARIANCES = np.array([0.1, 1.0, 10.0, 2.0, 0.5, 4.0])

LINEAR = {
    "small/weights/whole/k-fold": of(linear(8.0), WHOLE, KFold(6), "gibbs", seed=7),
    "small/weights/fractions/leave-one-out": of(
        linear(40.0, SHIFT, VARIANCES), FRACTIONS, LeaveOneOut(), "predictive"
    ),
    "small/weights/fractions/reference": of(
        unknown(3.0, 2.0, 0.1 * SHIFT, covariance(6)), FRACTIONS, ReferenceRisk(), "gibbs"
    ),
    "small/weights/zeros/bootstrap": of(linear(9.0), SOME_ZERO, Bootstrap(50), "predictive"),
    "small/weights/whole/safe-bayes": of(
        unknown(1.5, 0.7), WHOLE, SafeBayes(start=4, stride=3), "gibbs"
    ),
    "small/full-prior/leave-one-out": of(
        linear(4.0, 0.1 * SHIFT, covariance(6, 4.0)), SMALL, LeaveOneOut(), "gibbs"
    ),
    "small/diagonal-prior/k-fold": of(
        unknown(2.0, 1.0, 0.3, VARIANCES), SMALL, KFold(5, "alpha"), "predictive"
    ),
    "small/scalar-prior/split": of(
        linear(5.0, -0.5, 0.5), SMALL, SampleSplitting("alpha", both_directions=True), "gibbs"
    ),
    # The square is another loss than the model's: it has no constant.
    "small/safe-bayes/square": of(
        linear(20.0),
        SMALL,
        SafeBayes(loss="square"),
        "gibbs",
        noise_variance=None,
        bounds=(0.0, 100.0),
    ),
    "small/safe-bayes/in-model": of(linear(20.0), SMALL, SafeBayes(in_model=True), "gibbs"),
    "small/noise-too-large/leave-one-out": of(
        linear(300.0), SMALL, LeaveOneOut(), "predictive", bounds=(0.0, 1e4)
    ),
    "small/noise-too-small/k-fold": of(
        linear(0.1, 0.0, 30.0), SMALL, KFold(10), "predictive", bounds=(1e-12, 2.0)
    ),
    "copies/k-fold/together": of(linear(10.0), COPIES, KFold(8), "predictive"),
    "copies/k-fold/apart": of(linear(3.0), COPIES, KFold(8, duplicates="apart"), "gibbs"),
    "copies/reference": of(linear(3.0), COPIES, ReferenceRisk(), "gibbs"),
    "few-values/k-fold": of(linear(0.05, 2.0), FEW_VALUES, KFold(10), "predictive"),
    "few-values/reference": of(
        linear(0.5), FEW_VALUES, ReferenceRisk(), "gibbs", bounds=(0.0, 100.0)
    ),
    "groups/splitter": of(
        linear(0.1), GROUPED, FromSplitter(GroupsApart(4), "alpha", LABELS_OF_GROUPS), "predictive"
    ),
    "units/leave-one-out": of(
        linear(2e9, 0.0, PRIOR_OF_UNITS), IN_UNITS, LeaveOneOut(), "predictive"
    ),
    "units/k-fold": of(unknown(2.0, 2e8, 0.0, 0.02 * UNITS**-2.0), IN_UNITS, KFold(7), "gibbs"),
    "tall/leave-one-out": of(linear(20.0), TALL, LeaveOneOut(), "gibbs"),
    "tall/safe-bayes": of(linear(20.0), TALL, SafeBayes(), "gibbs"),
    "tall/bootstrap": of(unknown(), TALL, Bootstrap(20), "predictive"),
    "large/k-fold": of(linear(20.0), LARGE, KFold(10), "gibbs", bounds=(0.0, 50.0)),
}

# Rules without a curve.
RATES = {
    "rates/coverage/unknown": of(
        unknown(2.0, 2.0, 0.0, 50.0), SMALL, Coverage(0.9, 80), "gibbs", seed=4, **RESAMPLED
    ),
    "rates/sandwich": of(linear(16.0, 0.0, 900.0), SMALL, Sandwich(), "gibbs"),
    "rates/sandwich/determinant": of(
        unknown(2.0, 2.0, 0.0, 100.0), FRACTIONS, Sandwich("determinant", correction="HC3"), "gibbs"
    ),
    "rates/sandwich/groups": of(
        linear(0.5, 0.0, 100.0), GROUPED, Sandwich(groups=LABELS_OF_GROUPS), "gibbs"
    ),
    "rates/fisher-information": of(
        linear(16.0, SHIFT, covariance(6, 900.0)), SMALL, FisherInformation(), "gibbs"
    ),
    "rates/prior-information": of(linear(16.0, SHIFT, 30.0), SMALL, PriorInformation(), "gibbs"),
    "rates/fitted-coverage": of(
        linear(1.0, 0.0, 100.0), GROUPED, FittedCoverage(groups=LABELS_OF_GROUPS), "gibbs"
    ),
    "rates/coarsened": of(models.GaussianMean(2.0, 1.0, 3.0), MEAN, Coarsened(25.0), "gibbs"),
}

# A prior that learns its scale.
learnt = models.HierarchicalLinear
SOME_SCALES = {"scales": (0.1, 0.5, 2.0), "intercept": False}

HIERARCHICAL = {
    "hierarchical/leave-one-out": of(learnt(), LINEAR_4, LeaveOneOut(), "predictive"),
    "hierarchical/known/k-fold": of(learnt(4.0), SMALL, KFold(5), "gibbs"),
    "hierarchical/wide/k-fold": of(learnt(a=2.0, b=3.0), WIDE, KFold(4, "alpha"), "predictive"),
    "hierarchical/weights/leave-one-out": of(
        learnt(25.0, **SOME_SCALES), FRACTIONS, LeaveOneOut(), "predictive"
    ),
    "hierarchical/average": of(learnt(), SMALL, Stacking(KFold(5)), "predictive", **AVERAGED),
}

# Other losses, and posteriors that are approximations.
FEW_LABELS = make.labels(40, 6, 1.0, seed=30, flipped=0.1)
WEIGHED_LABELS = FEW_LABELS.with_weights(np.random.default_rng(31).uniform(0.5, 2.0, 40))
MANY_LABELS = make.labels(600, 8, 1.0, seed=32, flipped=0.1)
CLASSES = make.classes(45, 3, 3, seed=33)
COUNTS = make.counts(40, 4, seed=34)
fitted = partial(of, **FITTED)

FITS = {
    "jaakkola/safe-bayes": fitted(
        models.JaakkolaLogistic(0.1, covariance(6)), FEW_LABELS, SafeBayes(stride=8), "gibbs"
    ),
    "laplace/leave-one-out": fitted(
        models.LaplaceLogistic(0.0, 4.0), MANY_LABELS, LeaveOneOut(), "predictive"
    ),
    "laplace/prior-information": fitted(
        models.LaplaceLogistic(0.0, 25.0), FEW_LABELS, PriorInformation(), "gibbs"
    ),
    "full-covariance/k-fold": fitted(
        models.FullCovarianceLogistic(0.1 * SHIFT, covariance(6)), WEIGHED_LABELS, KFold(5), "gibbs"
    ),
    "mean-field/split": fitted(
        models.MeanFieldLogistic(0.2, VARIANCES),
        FEW_LABELS,
        SampleSplitting("alpha", both_directions=True),
        "gibbs",
        bounds=(0.0, 10.0),
    ),
    "softmax/k-fold": fitted(
        models.SoftmaxLogistic(covariance(3)), CLASSES, KFold(5), "predictive"
    ),
    "poisson/k-fold": fitted(
        models.GibbsLinear(losses.Poisson(), offset=-1), COUNTS, KFold(5), "predictive"
    ),
    "student-t/k-fold": fitted(
        models.GibbsLinear(losses.StudentT(4.0, 3.0), "mean-field"), SMALL, KFold(5), "predictive"
    ),
    "huber/leave-one-out": fitted(
        models.GibbsLinear(losses.Huber(2.0), prior_cov=4.0),
        SMALL,
        LeaveOneOut(),
        "gibbs",
        bounds=(0.0, 100.0),
    ),
    "pinball/k-fold": fitted(
        models.GibbsLinear(losses.Pinball(0.8), prior_mean=SHIFT),
        FRACTIONS,
        KFold(5),
        "gibbs",
        bounds=(0.0, 20.0),
    ),
    "hinge/naive": fitted(models.GibbsLinear(losses.Hinge()), FEW_LABELS, Naive(), "gibbs"),
    "huber/sandwich": fitted(
        models.GibbsLinear(losses.Huber(2.0), prior_cov=100.0), SMALL, Sandwich(), "gibbs"
    ),
}

# Estimators add the constant.
INPUTS, WEIGHED_INPUTS, INPUTS_IN_UNITS = (
    each._replace(X=each.X[:, 1:]) for each in (SMALL, FRACTIONS, IN_UNITS)
)

ESTIMATORS = {
    "regressor/forecasts": estimated("GibbsRegressor", INPUTS, "leave-one-out", "predictive"),
    "regressor/forecasts/known": estimated(
        "GibbsRegressor",
        INPUTS_IN_UNITS,
        "leave-one-out",
        "predictive",
        noise_variance=1e9,
        about={
            "noise_variance": 1e9 / INPUTS_IN_UNITS.y.var(),  # in units of the response's deviation
            "constant": constant_of(1e9 / INPUTS_IN_UNITS.y.var()),
        },
    ),
    "regressor/coefficients": estimated(
        "GibbsRegressor", INPUTS, "sandwich", "gibbs", target="coefficients"
    ),
    "regressor/draws": estimated(
        "GibbsRegressor",
        WEIGHED_INPUTS,
        "k-fold",
        "gibbs",
        target="draws",
        degree=2,
        about={"bounds": (0.0, 100.0)},
    ),
    "classifier/forecasts": estimated(
        "GibbsClassifier",
        FEW_LABELS._replace(X=FEW_LABELS.X[:, 1:]),
        "k-fold",
        "predictive",
        prior_scale=1.5,
        about=FITTED,
    ),
}

DRAWS = {
    "draws/leave-one-out": DrawsProblem(
        log_likelihood=partial(make.log_likelihood, 30, 400, 1.4),
        strategy=None,
        risk="predictive",
        betas=(0.7, 0.85, 1.0, 1.15, 1.3),  # which the draws support
        rtol=1e-7,
    ),
    "draws/sandwich": DrawsProblem(
        log_likelihood=partial(make.log_likelihood, 30, 400, 1.4),
        strategy="sandwich",
        risk="gibbs",
        range_rtol=0.02,  # rows without responses are numbered differently by other processors
    ),
}

PROBLEMS: dict[str, Problem] = THESIS | LINEAR | RATES | HIERARCHICAL | FITS | ESTIMATORS | DRAWS
