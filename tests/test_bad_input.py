"""Bad input gets one line that names the argument and the value, and nothing is computed."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scenarios import table_of
from scipy import sparse
from sklearn import model_selection

from temperance import calibrate, expected_risk, models, strategies
from temperance import data as memory
from temperance.checks import as_data
from temperance.plans import Pairs

rng = np.random.default_rng(0)
N = 12
X = rng.standard_normal((N, 2))
y = X[:, 0] + 2 * rng.standard_normal(N)
LABELS = (np.arange(N) % 2).astype(int)
LINEAR = models.GaussianLinear()
LOGISTIC = models.LaplaceLogistic()
FAR = (0.0, 0.9)
NO_COLUMN = "X must have at least one column, got 0 (None is for GaussianMean)"
NAMED = "bayes, naive, sample-splitting, bootstrap, safe-bayes, k-fold, leave-one-out, "
NAMED += "stacking, reference-risk, coverage, sandwich, fisher-information, prior-information, "
NAMED += "fitted-coverage"


def put(array, place, value):
    changed = np.array(array, dtype=float)
    changed[place] = value
    return changed


def linear(X=X, y=y, strategy=None, **options):
    return lambda: calibrate(LINEAR, X, y, strategy, **options)


def prior(**options):
    return lambda: calibrate(models.GaussianLinear(**options), X, y)


def logistic(y=LABELS, model=LOGISTIC, **options):
    return lambda: calibrate(model, X, y, **options)


def risk(train=(X, y), test=(X, y), alpha=1.0, **options):
    return lambda: expected_risk(LINEAR, train, test, alpha, **options)


def posterior(*data, alpha=1.0, weights=None):
    return lambda: LINEAR.posterior(*(data or (X, y)), alpha=alpha, weights=weights)


def naive():
    data = as_data(X, y)
    return data, strategies.Naive().plan(data, rng)


def curve(beta):
    return lambda: table_of(LINEAR, *naive())(beta)


def too_large(X, y):
    largest = " and ".join(f"{float(np.abs(part).max()):.3g}" for part in (X, y))
    return (
        "X and y must be of a size whose squares are finite, also times weights, prior variances "
        f"and beta, got numbers up to {largest}"
    )


class Splits:
    """A splitter that says what it is told."""

    def __init__(self, *splits):
        self.splits = splits

    def split(self, X, y, groups):
        return iter(self.splits)


def split(*splits, **options):
    return linear(strategy=strategies.FromSplitter(Splits(*splits)), **options)


# what is wrong: (what to call, the whole message)
BAD = {
    # X
    "X nan": (linear(X=put(X, (3, 1), np.nan)), "X must be finite, got nan in row 3, column 1"),
    "X inf": (linear(X=put(X, (0, 0), -np.inf)), "X must be finite, got -inf in row 0, column 0"),
    "X nan in a vector": (
        linear(X=put(y, 5, np.nan)),
        "X must be finite, got nan in row 5, column 0",
    ),
    "X text": (linear(X=[[1.0, "a"]] * N), "X must hold real numbers, got 'a'"),
    "X text of numbers": (linear(X=[["1", "2"]] * N), "X must hold real numbers, got '1'"),
    "X objects": (
        linear(X=np.array([[1.0, "2"]] * N, dtype=object)),
        "X must hold real numbers, got '2'",
    ),
    "X complex": (linear(X=X + 1j * 0), f"X must hold real numbers, got {complex(X[0, 0])!r}"),
    "X dates": (
        linear(X=np.full(N, np.datetime64("2020-02-03"))),
        "X must hold real numbers, got datetime.date(2020, 2, 3)",
    ),
    "X None": (linear(X=[[1.0, None]] * N), "X must hold real numbers, got None"),
    "X missing": (linear(X=None), NO_COLUMN),
    "X without columns": (linear(X=np.empty((N, 0))), NO_COLUMN),
    "X ragged": (
        linear(X=[[1.0, 2.0], [3.0]] * (N // 2)),
        "X must hold real numbers, got rows of different lengths",
    ),
    "X 3-d": (linear(X=X[None]), f"X must have one or two dimensions, got shape (1, {N}, 2)"),
    "X 0-d": (linear(X=1.0), "X must have one or two dimensions, got shape ()"),
    "X longer than y": (
        linear(y=y[:-1]),
        f"X and y must have the same length, got {N} and {N - 1}",
    ),
    "X a dict": (linear(X={"a": 1}), "X must hold real numbers, got {'a': 1}"),
    "X sparse": (
        linear(X=sparse.csr_matrix(X)),
        f"X must hold real numbers, got {' '.join(repr(sparse.csr_matrix(X)).split())[:77]}...",
    ),
    "X masked": (
        linear(X=np.ma.masked_greater(X, 1.0)),
        "X must hold real numbers, got masked entries",
    ),
    "powers that overflow": (
        lambda: calibrate(models.Polynomial(5), np.full(N, -1e100), y),
        "X must have finite powers up to 4, got numbers up to 1e+100",
    ),
    "powers that do not fit": (
        lambda: calibrate(models.Polynomial(10**15, prior_cov=1.0), y, y),
        f"n_powers={10**15} for {N} rows would take {32e15 * N:.3g} bytes of memory, 1e+10 are "
        "available",
    ),
    "squares of X that overflow": (linear(X=1e160 * X), too_large(1e160 * X, y)),
    "squares of y that overflow": (linear(y=1e160 * y), too_large(X, 1e160 * y)),
    "weights times squares that overflow": (
        linear(X=1e10 * X, weights=np.full(N, 1e300)),
        too_large(1e10 * X, y),
    ),
    "prior variances times squares that overflow": (
        prior(prior_cov=1e300, prior_mean=1e200),
        too_large(X, y),
    ),
    "squares of a risk that overflow": (
        risk(test=(X, 1e200 * y)),
        too_large(X, 1e200 * y),
    ),
    "powers beyond the usual prior": (
        lambda: calibrate(models.Polynomial(2000), 0.5 * np.tanh(y), y),
        "n_powers must be at most 1024 for the prior variances 2^-k, got 2000; give prior_cov for "
        "more",
    ),
    "weights without a finite sum": (
        linear(weights=np.full(N, 1e308)),
        "weights must have a finite sum, got up to 1e+308",
    ),
    "X of two columns for a polynomial": (
        lambda: calibrate(models.Polynomial(3), X, y),
        "X must have one column for Polynomial, got 2",
    ),
    "X of other columns in a prediction": (
        lambda: LINEAR.posterior(X, y, alpha=1.0).predict(X[:, :1]),
        "X must have 2 columns, got 1",
    ),
    "X of other columns in a prediction, unknown variance": (
        lambda: models.NormalInverseGammaLinear().posterior(X, y, alpha=1.0).predict(X[:, :1]),
        "X must have 2 columns, got 1",
    ),
    # y
    "y nan": (linear(y=put(y, 7, np.nan)), "y must be finite, got nan in row 7"),
    "y inf": (posterior(X, put(y, 1, np.inf)), "y must be finite, got inf in row 1"),
    "y text": (logistic(y=["yes", "no"] * (N // 2)), "y must hold real numbers, got 'yes'"),
    "y complex": (linear(y=[1j] * N), "y must hold real numbers, got 1j"),
    "y None": (linear(y=None), "y must hold real numbers, got None"),
    "y 2-d": (linear(y=y[:, None]), f"y must be one-dimensional, got shape ({N}, 1)"),
    "y 0-d": (linear(y=1.0), "y must be one-dimensional, got shape ()"),
    "y empty": (linear(X=[], y=[]), "y must have at least one observation, got 0"),
    "y too large for a float": (
        linear(y=[10**400] * N),
        f"y must hold real numbers, got 1{'0' * 76}...",
    ),
    "labels 1 and 2": (logistic(y=LABELS + 1), "y must hold the labels 0 and 1, got 2.0"),
    "labels -1 and 1": (logistic(y=2 * LABELS - 1), "y must hold the labels 0 and 1, got -1.0"),
    "labels of a posterior": (
        lambda: LOGISTIC.posterior(X, y + 5, alpha=1.0),
        f"y must hold the labels 0 and 1, got {float(y[0] + 5)!r}",
    ),
    "one class": (logistic(y=0 * LABELS), "y must hold both classes 0 and 1, got only 0.0"),
    "one class of positive weight": (
        logistic(weights=LABELS),
        "y must hold both classes 0 and 1, got only 1.0",
    ),
    # weights
    "weights nan": (
        linear(weights=put(np.ones(N), 2, np.nan)),
        "weights must be finite, got nan in row 2",
    ),
    "weights inf": (
        posterior(weights=put(np.ones(N), 4, np.inf)),
        "weights must be finite, got inf in row 4",
    ),
    "weights negative": (
        linear(weights=put(np.ones(N), 4, -0.5)),
        "weights must be non-negative, got -0.5 in row 4",
    ),
    "weights zero": (linear(weights=np.zeros(N)), "weights must have a positive sum, got 0.0"),
    "weights too few": (linear(weights=[1, 2]), f"weights must have shape ({N},), got shape (2,)"),
    "weights a number": (linear(weights=2.0), f"weights must have shape ({N},), got shape ()"),
    "weights text": (linear(weights=["a"] * N), "weights must hold real numbers, got 'a'"),
    # priors and noise
    "noise_variance zero": (prior(noise_variance=0.0), "noise_variance must be positive, got 0.0"),
    "noise_variance of numpy": (
        prior(noise_variance=np.float64(-1)),
        "noise_variance must be positive, got -1.0",
    ),
    "noise_variance nan": (
        prior(noise_variance=np.nan),
        "noise_variance must be finite, got nan",
    ),
    "noise_variance text": (
        prior(noise_variance="1.0"),
        "noise_variance must be a number, got '1.0'",
    ),
    "noise_variance array": (
        lambda: models.GaussianMean(noise_variance=np.array([1.0])),
        "noise_variance must be a number, got [1.0]",
    ),
    "prior_cov zero": (prior(prior_cov=0.0), "prior_cov must be positive, got 0.0"),
    "prior_cov negative": (prior(prior_cov=[1.0, -2.0]), "prior_cov must be positive, got -2.0"),
    "prior_cov nan": (
        prior(prior_cov=[[1.0, 0.0], [np.nan, 1.0]]),
        "prior_cov must be finite, got nan in row 1, column 0",
    ),
    "prior_cov not symmetric": (
        prior(prior_cov=[[1.0, 0.5], [0.25, 1.0]]),
        "prior_cov must be symmetric, it differs from its transpose by 0.25",
    ),
    "prior_cov not positive definite": (
        prior(prior_cov=[[1.0, 2.0], [2.0, 1.0]]),
        "prior_cov must be positive definite, its smallest eigenvalue is "
        f"{float(np.linalg.eigvalsh([[1.0, 2.0], [2.0, 1.0]])[0])!r}",
    ),
    "prior_cov shape": (
        prior(prior_cov=[1.0, 1.0, 1.0]),
        "prior_cov must be a scalar or have shape (2,) or (2, 2), got shape (3,)",
    ),
    "prior_cov text": (prior(prior_cov="wide"), "prior_cov must hold real numbers, got 'wide'"),
    "prior_cov ragged": (
        logistic(model=models.MeanFieldLogistic(prior_cov=[[1.0], [1.0, 2.0]])),
        "prior_cov must hold real numbers, got rows of different lengths",
    ),
    "prior_cov not diagonal": (
        logistic(model=models.MeanFieldLogistic(prior_cov=[[1.0, 0.5], [0.5, 1.0]])),
        "prior_cov must be diagonal for a mean-field posterior, got an off-diagonal element 0.5",
    ),
    "prior_mean shape": (
        prior(prior_mean=[0.0, 0.0, 0.0]),
        "prior_mean must be a scalar or have shape (2,), got shape (3,)",
    ),
    "prior_mean nan": (prior(prior_mean=np.nan), "prior_mean must be finite, got nan"),
    "prior_mean None": (prior(prior_mean=None), "prior_mean must hold real numbers, got None"),
    "a zero": (lambda: models.NormalInverseGammaLinear(a=0), "a must be positive, got 0"),
    "b nan": (lambda: models.NormalInverseGammaLinear(b=np.nan), "b must be finite, got nan"),
    "n_powers zero": (lambda: models.Polynomial(0), "n_powers must be at least 1, got 0"),
    "n_powers float": (lambda: models.Polynomial(2.0), "n_powers must be an integer, got 2.0"),
    "method": (
        lambda: models.MeanFieldLogistic(method="adam"),
        "method must be one of 'deterministic', 'sgd', got 'adam'",
    ),
    "steps": (lambda: models.MeanFieldLogistic(steps=0), "steps must be at least 1, got 0"),
    "rate": (lambda: models.MeanFieldLogistic(rate=-1.0), "rate must be positive, got -1.0"),
    # alpha and beta
    "alpha negative": (posterior(alpha=-1.0), "alpha must be non-negative, got -1.0"),
    "alpha zero, of a level of flat prior": (
        lambda: models.HierarchicalLinear().posterior(np.ones((N, 1)), y, alpha=0.0),
        "alpha must be positive for an intercept of flat prior, got 0.0",
    ),
    "alpha nan": (posterior(alpha=np.float64("nan")), "alpha must be finite, got nan"),
    "alpha text": (posterior(alpha="3"), "alpha must be a number, got '3'"),
    "alpha of a risk negative": (
        risk(alpha=np.array([1.0, -2.0])),
        "alpha must be finite and non-negative, got -2.0",
    ),
    "alpha of a risk nan": (
        risk(alpha=np.nan),
        "alpha must be finite and non-negative, got nan",
    ),
    "alpha of a risk text": (risk(alpha="n"), "alpha must hold real numbers, got 'n'"),
    "beta negative": (curve(-0.5), "beta must be finite and non-negative, got -0.5"),
    "beta of numpy": (
        curve(np.array([1.0, -0.5])),
        "beta must be finite and non-negative, got -0.5",
    ),
    "beta inf": (curve([0.0, np.inf]), "beta must be finite and non-negative, got inf"),
    "beta text": (curve("one"), "beta must hold real numbers, got 'one'"),
    "beta ragged": (
        curve([[1.0], [1.0, 2.0]]),
        "beta must hold real numbers, got rows of different lengths",
    ),
    # options of calibrate
    "bounds reversed": (
        linear(bounds=np.array([3.0, 0.0])),
        "bounds must satisfy 0 <= lower < upper <= 1e+100, got (3.0, 0.0)",
    ),
    "bounds equal": (
        linear(bounds=(1, 1)),
        "bounds must satisfy 0 <= lower < upper <= 1e+100, got (1.0, 1.0)",
    ),
    "bounds negative": (
        linear(bounds=(-1.0, 3.0)),
        "bounds must satisfy 0 <= lower < upper <= 1e+100, got (-1.0, 3.0)",
    ),
    "bounds infinite": (
        linear(bounds=(0.0, np.inf)),
        "bounds must satisfy 0 <= lower < upper <= 1e+100, got (0.0, inf)",
    ),
    "bounds nan": (
        linear(bounds=(np.nan, 1.0)),
        "bounds must satisfy 0 <= lower < upper <= 1e+100, got (nan, 1.0)",
    ),
    "bounds one number": (linear(bounds=3), "bounds must be two numbers (lower, upper), got 3"),
    "bounds three": (
        linear(bounds=(np.float64(0), 1, 2)),
        "bounds must be two numbers (lower, upper), got (0.0, 1, 2)",
    ),
    "bounds text": (linear(bounds="03"), "bounds must be two numbers (lower, upper), got '03'"),
    "bounds None": (linear(bounds=None), "bounds must be two numbers (lower, upper), got None"),
    "bounds without Bayes": (
        linear(strategy="bayes", bounds=FAR),
        "bounds must contain beta = 1 for Bayes, got (0.0, 0.9)",
    ),
    "risk": (linear(risk="mse"), "risk must be one of 'gibbs', 'predictive', got 'mse'"),
    "seed negative": (
        linear(seed=np.int64(-1)),
        "seed must be a non-negative integer, a Generator or None, got -1",
    ),
    "seed text": (
        risk(seed="one"),
        "seed must be a non-negative integer, a Generator or None, got 'one'",
    ),
    "model class": (
        lambda: calibrate(models.GaussianLinear, X, y),
        "model must be an instance, got <class 'temperance.linear.models.GaussianLinear'>",
    ),
    "model name": (
        lambda: expected_risk("linear", (X, y), (X, y), 1.0),
        "model must have the methods posterior, held_out, got 'linear' without posterior, held_out",
    ),
    "strategy name, nearly": (
        linear(strategy="kfold"),
        f"strategy must be one of {NAMED}, got 'kfold' (did you mean 'k-fold'?)",
    ),
    "strategy name, far": (linear(strategy="xyz"), f"strategy must be one of {NAMED}, got 'xyz'"),
    "strategy class": (
        linear(strategy=strategies.KFold),
        "strategy must be a name or an instance with a method select, got "
        "<class 'temperance.strategies.k_fold.KFold'> (did you mean KFold()?)",
    ),
    "splitter as a strategy": (
        linear(
            strategy=type("Splitter", (), {"split": None, "__repr__": lambda self: "Split()"})()
        ),
        "strategy must be a name or an instance with a method select, got Split() (wrap a splitter "
        "in strategies.FromSplitter)",
    ),
    "strategy name, as its class": (
        linear(strategy="KFold"),
        f"strategy must be one of {NAMED}, got 'KFold' (did you mean 'k-fold'?)",
    ),
    "strategy name, abbreviated": (
        linear(strategy="LOO"),
        f"strategy must be one of {NAMED}, got 'LOO' (did you mean 'leave-one-out'?)",
    ),
    # plans
    "plan of one dimension": (
        lambda: Pairs(np.ones(3), np.ones(3), 3.0),
        "a plan's train weights must have shape (pairs, n), got (3,)",
    ),
    "plan of two shapes": (
        lambda: Pairs(np.ones((1, 3)), np.ones((1, 4)), 3.0),
        "a plan's test weights must have shape (pairs, n), got (1, 4)",
    ),
    "plan that trains on nothing": (
        lambda: Pairs(np.array([[1.0, 1.0], [0.0, 0.0]]), np.ones((2, 2)), 2.0),
        "a plan's train weights must be positive somewhere, got only 0 in pair 1",
    ),
    "plan that tests nothing": (
        lambda: Pairs(np.ones((1, 2)), np.zeros((1, 2)), 2.0),
        "a plan's test weights must be positive somewhere, got only 0 in pair 0",
    ),
    "plan with a negative weight": (
        lambda: Pairs(np.array([[1.0, -2.0]]), np.ones((1, 2)), 2.0),
        "a plan's train weights must be non-negative, got -2.0",
    ),
    # options of expected_risk
    "gradient": (
        risk(gradient="score"),
        "gradient must be one of 'exact', 'covariance', got 'score'",
    ),
    "risk of the covariance gradient": (
        risk(gradient="covariance", risk="predictive"),
        "risk must be 'gibbs' for the covariance gradient, got 'predictive'",
    ),
    "draws": (risk(n_draws=1), "n_draws must be at least 2, got 1"),
    "train a matrix": (risk(train=X), "train must be (X, y) or (X, y, weights), got ndarray"),
    "test without y": (
        risk(test=(X,)),
        "test must be (X, y) or (X, y, weights), got tuple of length 1",
    ),
    "test weights": (
        risk(test=(X, y, -np.ones(N))),
        "test: weights must be non-negative, got -1.0 in row 0",
    ),
    "train nan": (
        risk(train=(X, put(y, 0, np.nan))),
        "train: y must be finite, got nan in row 0",
    ),
    "test of other columns": (
        risk(test=(X[:, :1], y)),
        "test must have as many columns as train, got 1 and 2",
    ),
    # strategies
    "transfer": (
        lambda: strategies.LeaveOneOut("gamma"),
        "transfer must be one of 'beta', 'alpha', got 'gamma'",
    ),
    "transfer None": (
        lambda: strategies.SafeBayes(None),
        "transfer must be one of 'beta', 'alpha', got None",
    ),
    "n_folds one": (lambda: strategies.KFold(np.int64(1)), "n_folds must be at least 2, got 1"),
    "n_folds float": (lambda: strategies.KFold(5.0), "n_folds must be an integer, got 5.0"),
    "n_folds bool": (lambda: strategies.KFold(True), "n_folds must be an integer, got True"),
    "duplicates": (
        lambda: strategies.KFold(duplicates=True),
        "duplicates must be one of 'auto', 'together', 'apart', got True",
    ),
    "n_draws zero": (lambda: strategies.Bootstrap(0), "n_draws must be at least 1, got 0"),
    "out_of_bag": (
        lambda: strategies.Bootstrap(out_of_bag=1),
        "out_of_bag must be one of False, True, got 1",
    ),
    "repeats without shuffle": (
        lambda: strategies.SampleSplitting(repeats=3),
        "repeats must be 1 unless shuffle is True, got 3: the same split would be repeated",
    ),
    "start zero": (lambda: strategies.SafeBayes(start=0), "start must be at least 1, got 0"),
    "permutations": (
        lambda: strategies.SafeBayes(permutations=-1),
        "permutations must be at least 0, got -1",
    ),
    "too few rows for the folds": (
        linear(X=X[:5], y=y[:5], strategy=strategies.KFold()),
        "n_folds must be at most the number of distinct rows, got 10 for 5; "
        "use KFold(5) or LeaveOneOut()",
    ),
    "one row for the folds": (
        linear(X=X[:1], y=y[:1], strategy=strategies.KFold()),
        "X and y must have at least 2 distinct rows for KFold, got 1; use Bayes()",
    ),
    "copies of one row for the folds": (
        linear(
            X=np.ones((N, 1)), y=np.ones(N), strategy=strategies.KFold(2, duplicates="together")
        ),
        "X and y must have at least 2 distinct rows for KFold, got 1; use Bayes()",
    ),
    "too few rows for a reference of unknown variance": (
        lambda: calibrate(
            models.NormalInverseGammaLinear(), X[:2], y[:2], strategies.ReferenceRisk()
        ),
        "X and y must hold more than 2 observations for a reference of unknown variance, copies "
        "counted once, got 2",
    ),
    "too few distinct rows for the folds": (
        linear(X=np.ones((N, 1)), y=LABELS, strategy=strategies.KFold(3, duplicates="together")),
        "n_folds must be at most the number of distinct rows, got 3 for 2; "
        "use KFold(2) or LeaveOneOut()",
    ),
    "too few rows to leave one out": (
        linear(X=X[:1], y=y[:1], strategy="leave-one-out"),
        "X and y must have at least 2 distinct rows to leave one out, got 1",
    ),
    "too few rows to stack": (
        linear(X=X[:1], y=y[:1]),
        "X and y must have at least 2 distinct rows, got 1",
    ),
    "bounds below all betas of a stack": (
        linear(bounds=(0, 1e-5)),
        "bounds must reach 0.001 to stack, got (0.0, 1e-05)",
    ),
    "stack of draws": (
        linear(strategy="stacking", risk="gibbs"),
        "Stacking is for forecasts: risk must be 'predictive', got 'gibbs'",
    ),
    "stack of what is not held out": (
        lambda: strategies.Stacking(strategies.Naive()),
        "source must hold rows out, as LeaveOneOut() does, got Naive()",
    ),
    "too few rows of positive weight": (
        linear(strategy="sample-splitting", weights=np.eye(N)[0]),
        "X must have at least 2 rows to be split, got 1",
    ),
    "too few rows after the start": (
        linear(X=X[:3], y=y[:3], strategy=strategies.SafeBayes(start=3)),
        "start must be less than the number of rows, got 3 for 3 rows",
    ),
    "too few rows to resample": (
        linear(X=X[:1], y=y[:1], strategy=strategies.Bootstrap(4)),
        "weights must count observations, at least 2 in all to be resampled, got 1.0",
    ),
    "no row out of the bag": (
        linear(
            X=X[:2], y=y[:2], weights=[1e6, 2e6], strategy=strategies.Bootstrap(4, out_of_bag=True)
        ),
        "n_draws must be larger for out-of-bag testing of 2 rows: none of 4 resamples left a row "
        "out",
    ),
    "splitter class": (
        lambda: strategies.FromSplitter(model_selection.KFold),
        f"splitter must be an instance with a method split, got {model_selection.KFold!r}",
    ),
    "splitter None": (
        lambda: strategies.FromSplitter(None),
        "splitter must be an instance with a method split, got None",
    ),
    "splitter name": (
        lambda: strategies.FromSplitter("k-fold"),
        "splitter must be an instance with a method split, got 'k-fold'",
    ),
    "splitter without splits": (split(), "splitter must give at least one split, got 0"),
    "splitter of fewer rows": (
        linear(strategy=strategies.FromSplitter(model_selection.KFold(13))),
        "splitter must split the 12 rows of positive weight, got its refusal: Cannot have number "
        "of splits n_splits=13 greater than the number of samples: n_samples=12.",
    ),
    "splitter without test rows": (
        split(([0, 1], [2]), ([0, 1], [])),
        "splitter must give test rows from 0 to 11, the rows of positive weight, got none in "
        "split 1",
    ),
    "splitter beyond the rows": (
        split(([0, 11], [2]), weights=put(np.ones(N), 0, 0.0)),
        "splitter must give train rows from 0 to 10, the rows of positive weight, got row 11 in "
        "split 0",
    ),
    "groups": (
        linear(strategy=strategies.FromSplitter(model_selection.GroupKFold(2), groups=LABELS[:-1])),
        f"groups must have shape ({N},), one entry for each row of positive weight, got shape "
        f"({N - 1},)",
    ),
    "Oracle of other columns": (
        linear(strategy=strategies.Oracle(X[:, :1], y)),
        "X_test must have 2 columns like X, got 1",
    ),
    "Oracle nan": (
        linear(strategy=strategies.Oracle(X, put(y, 3, np.nan))),
        "Oracle's test data: y must be finite, got nan in row 3",
    ),
}


@pytest.mark.parametrize("call, message", BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_one_line(call, message, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e10)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$") as caught:
        call()
    assert "\n" not in str(caught.value)
    assert "np." not in str(caught.value)
    # Nobody wants to read how numpy failed first.
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.fixture
def no_computing(monkeypatch):
    """Models that fail when they are asked for a curve or a posterior."""

    def compute(*args, **kwargs):
        pytest.fail("something was computed")

    for model in (type(LINEAR), type(LOGISTIC), models.Polynomial, models.MeanFieldLogistic):
        asked = "held_out" if hasattr(model, "held_out") else "risk_curve"
        monkeypatch.setattr(model, asked, compute)
        monkeypatch.setattr(model, "posterior", compute)


CALIBRATIONS = {
    name: case
    for name, case in BAD.items()
    if case[0].__qualname__.split(".")[0] in ("linear", "logistic", "prior", "split")
    and "overflow" not in name
}


@pytest.mark.parametrize("call, message", CALIBRATIONS.values(), ids=CALIBRATIONS)
def test_nothing_is_computed_before_the_refusal(call, message, no_computing):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


def test_the_guard_against_computing_guards(no_computing):
    with pytest.raises(pytest.fail.Exception, match="something was computed"):
        linear(strategy="bayes")()


def bayes(X=X, y=y, model=LINEAR, **options):
    return lambda: calibrate(model, X, y, "bayes", **options)


def bayes_labels(y=LABELS):
    return bayes(y=y, model=LOGISTIC)


REFERENCE = {
    "linear": bayes(),
    "logistic": bayes_labels(),
    "one column": bayes(X=X[:, :1]),
    "signs": bayes(X=(X > 0).astype(float)),
    "whole": bayes(y=np.round(y)),
}
UNUSUAL = {
    "lists": ("linear", bayes(X=X.tolist(), y=y.tolist())),
    "tuples": ("linear", bayes(X=tuple(map(tuple, X)), y=tuple(y))),
    "pandas": (
        "linear",
        bayes(
            X=pd.DataFrame(X, index=range(50, 50 + N), columns=["a", "b"]),
            y=pd.Series(y, index=range(N, 0, -1)),
            weights=pd.Series(np.ones(N)),
        ),
    ),
    "objects": ("linear", bayes(X=X.astype(object), y=list(y))),
    "column-major": ("linear", bayes(X=np.asfortranarray(X), y=y[::-1][::-1])),
    "read-only": ("linear", bayes(X=np.broadcast_to(X, X.shape))),
    "integer weights": ("linear", bayes(weights=[1] * N)),
    "boolean weights": ("linear", bayes(weights=np.ones(N, bool))),
    "numpy options": (
        "linear",
        bayes(bounds=np.array([0, 3]), seed=np.int64(0)),
    ),
    "bounds in a list": ("linear", bayes(bounds=[0, 3])),
    "generator": ("linear", bayes(seed=np.random.default_rng(3))),
    "boolean y": ("logistic", bayes_labels(y=LABELS.astype(bool))),
    "boolean Series": ("logistic", bayes_labels(y=pd.Series(LABELS).astype("boolean"))),
    "float y": ("logistic", bayes_labels(y=LABELS.astype(float))),
    "small integer y": ("logistic", bayes_labels(y=LABELS.astype(np.int8))),
    "integer y of a regression": ("whole", bayes(y=np.round(y).astype(int))),
    "1-d X": ("one column", bayes(X=X[:, 0])),
    "Series as X": ("one column", bayes(X=pd.Series(X[:, 0], index=X[:, 1]))),
    "boolean X": ("signs", bayes(X=X > 0)),
    "zero-weight rows": (
        "linear",
        bayes(
            X=np.vstack([X[:4], [[9.0, 9.0]], X[4:]]),
            y=np.insert(y, 4, 99.0),
            weights=np.insert(np.ones(N), 4, 0.0),
        ),
    ),
}


@pytest.mark.parametrize("reference, call", UNUSUAL.values(), ids=UNUSUAL)
def test_good_input_in_unusual_clothes(reference, call):
    expected, found = REFERENCE[reference](), call()
    assert found.risk == pytest.approx(expected.risk, rel=1e-12)
    np.testing.assert_allclose(found.posterior.mean, expected.posterior.mean, rtol=1e-12)


def test_a_covariance_with_rounding_off_its_diagonal_is_symmetric():
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((2, 2)))[0]
    nearly = (rotation * 3.0) @ rotation.T + np.array([[0.0, 1e-17], [0.0, 0.0]])
    assert nearly[0, 1] != nearly[1, 0]
    found = models.GaussianLinear(prior_cov=nearly).posterior(X, y, alpha=3.0)
    expected = models.GaussianLinear(prior_cov=3.0).posterior(X, y, alpha=3.0)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-10)


def test_data_are_neither_copied_nor_written_to():
    mine = X + 0.0, y + 0.0, np.linspace(1.0, 2.0, len(y))
    kept = [part.copy() for part in mine]
    data = calibrate(LINEAR, *mine[:2], "bayes", weights=mine[2]).data
    for part, own, before in zip((data.X, data.y, data.weights), mine, kept, strict=True):
        assert np.shares_memory(part, own)
        assert own.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            part[:] = 0.0
        np.testing.assert_array_equal(own, before)


@pytest.mark.parametrize(
    "strategy",
    [
        strategies.Naive(),
        strategies.LeaveOneOut(),
        strategies.SafeBayes(),
        strategies.SafeBayes("alpha"),
    ],
    ids=str,
)
def test_an_empty_array_of_betas_gives_an_empty_curve(strategy):
    curve = table_of(LINEAR, *strategy.planned(naive()[0], rng))
    assert curve([]).shape == curve([], derivative=True)[1].shape == (0,)
