"""Calibrate a sampled logistic regression, beside the five fits of plain cross-validation.

    python benchmarks/sampling.py

The calibration gives the risk at every beta in [0, 3] by 5-fold cross-validation; the fits, by
NumPyro's NUTS with its defaults of 1000 warm-up steps, 1000 draws and 4 chains, give it at beta = 1
alone.  Both times include compilation.
"""

from __future__ import annotations

import time

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

from temperance import calibrate, models
from temperance.strategies import KFold
from temperance.types import Data

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
    error = result.curve.error(np.array([1.0]))[0]
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


def main() -> None:
    """Time both and print the ratio."""
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
