"""Calibrate a sampled logistic regression, beside the five fits of plain cross-validation.

    python benchmarks/sampling.py
    python benchmarks/sampling.py dimensions 5 31 100 300

The calibration gives the risk at every beta in [0, 3] by 5-fold cross-validation; the fits, by
NumPyro's NUTS with its defaults of 1000 warm-up steps, 1000 draws and 4 chains, give it at beta = 1
alone.  Both times include compilation.

With ``dimensions`` the curve of five folds over [0, 3] is held against one fit of all rows by NUTS,
for several numbers of columns and for the hinge loss on the breast cancer data (31 columns): CPU
seconds without compilation, and evaluations of the gradient.
"""

from __future__ import annotations

import sys
import time
import warnings

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

from temperance import calibrate, models
from temperance.data import Data
from temperance.models.sampled.settings import SMC
from temperance.models.sampled.smc import MOST_STEPS, QUARTER_TURN
from temperance.strategies import KFold

OBSERVATIONS, PARAMETERS, FOLDS = 200, 20, 5


def make_data() -> Data:
    """Labels of a logistic model with standard normal inputs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((OBSERVATIONS, PARAMETERS))
    chance = 1 / (1 + np.exp(-X @ (0.5 * rng.standard_normal(PARAMETERS))))
    return Data(X, (rng.random(OBSERVATIONS) < chance).astype(float), np.ones(OBSERVATIONS))


def loss(theta, x, y):
    """Minus the log likelihood of a label."""
    return jax.nn.softplus(x @ theta) - y * (x @ theta)


def tempered(data: Data) -> tuple[float, float, float]:
    """Seconds, choice, and risk at Bayes of the calibration."""
    began = time.perf_counter()
    prior = dist.Normal(0.0, 1.0).expand([PARAMETERS])
    model = models.GibbsModel(loss, prior, progress=False, cache=False)
    result = calibrate(model, data.X, data.y, KFold(FOLDS), risk="predictive")
    print(result)
    error = result.table.error(np.array([1.0]))[0]
    print(f"  Monte Carlo error of the risk at Bayes: {error:.5f}")
    return time.perf_counter() - began, result.beta, result.bayes_risk


def plain(data: Data, chain_method: str) -> tuple[float, float]:
    """Seconds and predictive risk at Bayes of five fits."""

    def regression(X, y=None):
        theta = numpyro.sample("theta", dist.Normal(0, 1).expand([PARAMETERS]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=X @ theta), obs=y)

    plan = KFold(FOLDS).plan(data, np.random.default_rng(0)).pairs()
    began, total = time.perf_counter(), 0.0
    for fold, (train, test) in enumerate(zip(plan.train > 0, plan.test > 0, strict=True)):
        fit = MCMC(
            NUTS(regression),
            num_warmup=1000,
            num_samples=1000,
            num_chains=4,
            chain_method=chain_method,
            progress_bar=False,
        )
        fit.run(jax.random.key(fold), data.X[train], data.y[train])
        predictor = np.asarray(fit.get_samples()["theta"]) @ data.X[test].T
        chance = np.exp(data.y[test] * predictor - np.logaddexp(0, predictor)).mean(axis=0)
        total -= np.log(chance).sum()
    return time.perf_counter() - began, total / len(data)


def hinge(theta, x, y):
    """Hinge loss of a label 0 or 1."""
    return jax.numpy.maximum(0.0, 1.0 - (2 * y - 1) * (x @ theta))


def cancer() -> tuple:
    """Columns of the breast cancer data, standardised, with an intercept; labels."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.column_stack([np.ones(len(X)), X]), y.astype(float)


def logistic(d: int) -> tuple:
    """Labels of a logistic model with d columns and at least four rows for each."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((max(200, 4 * d), d))
    chance = 1 / (1 + np.exp(-X @ rng.standard_normal(d) / np.sqrt(d)))
    return X, (rng.random(len(X)) < chance).astype(float)


def curve_cost(loss, prior, X, y) -> tuple[int, int, float, float]:
    """Rungs, gradients, CPU seconds and R-hat of a curve, after a run that compiles."""
    model = models.GibbsModel(loss, prior, progress=False)
    programs, gradients = model._programs(FOLDS), []
    rung, particles = programs.rung, SMC().shape(FOLDS)

    def counted(key, positions, energy, step, *rest):
        length = np.clip(np.round(QUARTER_TURN / step), 1, MOST_STEPS)
        gradients.append(int(length) * particles[0] * particles[1])
        return rung(key, positions, energy, step, *rest)

    programs.__dict__["rung"] = counted
    calibrate(model, X, y, KFold(FOLDS), bounds=(0, 1e-3), risk="gibbs")
    gradients.clear()
    began = time.process_time()
    result = calibrate(model, X, y, KFold(FOLDS), risk="gibbs")
    seconds = time.process_time() - began
    reliability = result.table.curve.reliability(result.beta)
    return reliability.rungs, sum(gradients), seconds, reliability.rhat


def fit_cost(loss, prior, X, y) -> tuple[int, float]:
    """Gradients of one fit of all rows at beta = 1, and CPU seconds of a second, compiled one."""

    def model(X, y):
        theta = numpyro.sample("theta", prior.to_event(1))
        numpyro.factor("loss", -jax.vmap(lambda x, y: loss(theta, x, y))(X, y).sum())

    def four_chains():
        return MCMC(
            NUTS(model),
            num_warmup=1000,
            num_samples=1000,
            num_chains=4,
            chain_method="vectorized",
            progress_bar=False,
            jit_model_args=True,
        )

    fit, told, steps = four_chains(), {"extra_fields": ("num_steps",)}, 0
    fit.warmup(jax.random.key(0), X, y, collect_warmup=True, **told)
    steps += int(np.sum(fit.get_extra_fields()["num_steps"]))
    fit.run(fit.post_warmup_state.rng_key, X, y, **told)
    steps += int(np.sum(fit.get_extra_fields()["num_steps"]))
    fit = four_chains()
    for seed in (0, 1):
        began = time.process_time()
        fit.run(jax.random.key(seed), X, y)
        jax.block_until_ready(fit.get_samples())
        seconds = time.process_time() - began
    return steps, seconds


def dimensions(columns: list[int]) -> None:
    """Print the rows of a table: what a curve costs, and one fit."""
    problems = [(f"logistic, d = {d}", loss, *logistic(d)) for d in columns]
    problems += [("hinge, d = 31", hinge, *cancer())]
    print("| problem | rungs | gradients | CPU s | R-hat | NUTS: gradients | CPU s | fits |")
    print("|---|---|---|---|---|---|---|---|")
    for name, own_loss, X, y in problems:
        prior = dist.Normal(0.0, 1.0).expand([X.shape[1]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rungs, gradients, seconds, rhat = curve_cost(own_loss, prior, X, y)
            own, fit = fit_cost(own_loss, prior, X, y)
        print(
            f"| {name} | {rungs} | {gradients / 1e6:.2f} M | {seconds:.1f} | {rhat:.3f} | "
            f"{own / 1e6:.2f} M | {fit:.1f} | {seconds / fit:.1f} |",
            flush=True,
        )


def main() -> None:
    """Time both and print the ratio."""
    if sys.argv[1:2] == ["dimensions"]:
        dimensions([int(d) for d in sys.argv[2:]] or [5, 31, 100, 300])
        return
    data = make_data()
    seconds, beta, risk = tempered(data)
    print(f"calibration               {seconds:6.1f} s   beta {beta:.3f}, risk at Bayes {risk:.4f}")
    # The default, parallel chains, needs a device for each and falls back to one after another.
    for chain_method in ("sequential", "vectorized"):
        fits, fitted_risk = plain(data, chain_method)
        label = f"five fits, {chain_method}"
        print(f"{label:25} {fits:6.1f} s   risk at Bayes {fitted_risk:.4f}")
        print(f"{'ratio':25} {seconds / fits:6.2f}")


if __name__ == "__main__":
    main()
