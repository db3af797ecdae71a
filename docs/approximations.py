"""The Gaussian approximations of logistic regression beside draws of the exact posterior.

    python docs/approximations.py

For every setting and risk: the beta that 5-fold cross-validation chooses with the exact posterior
and with each approximation, how far the approximation's curve is from the exact one, and what its
choice costs on the exact curve.
"""

from __future__ import annotations

import warnings

import jax
import numpy as np
import numpyro.distributions as dist

from temperance import calibrate, models
from temperance.messages import BoundWarning
from temperance.models.sampled.settings import SMC
from temperance.strategies import KFold
from temperance_studies.settings import LogisticSetting

SETTINGS = {
    "thesis, n = 50, d = 30": LogisticSetting(50, 30, "laplace"),
    "n = 100, d = 10": LogisticSetting(100, 10, "laplace"),
    "n = 30, d = 5, inputs x 4": LogisticSetting(30, 5, "laplace", scale=2.0),
}
APPROXIMATIONS = {
    "Laplace": models.LaplaceLogistic(),
    "Jaakkola": models.JaakkolaLogistic(),
    "mean-field": models.MeanFieldLogistic(),
    "full covariance": models.FullCovarianceLogistic(),
}
BETAS = np.linspace(0, 3, 61)
HEAD = ("setting", "risk", "posterior", "beta", "risk there", "largest gap", "at beta", "cost")


def loss(theta, x, y):
    """Minus the log likelihood of a label."""
    return jax.nn.softplus(x @ theta) - y * (x @ theta)


def exact_model(d: int) -> models.GibbsModel:
    """Return the exact posterior, by draws."""
    prior = dist.Normal(0.0, 1.0).expand([d])
    return models.GibbsModel(loss, prior, sampler=SMC(islands=64), progress=False)


def lines(name: str, setting: LogisticSetting) -> list[tuple[str, ...]]:
    """One line for the exact posterior and one for each approximation, for either risk."""
    X, y = setting.draw(np.random.default_rng(0))
    sampled, found = exact_model(X.shape[1]), []
    for risk in ("gibbs", "predictive"):
        exact = calibrate(sampled, X, y, KFold(5), risk=risk)
        truth, errors = exact.curve(BETAS), exact.table.error(BETAS)
        at_choice = exact.table.error(np.array([exact.beta]))[0]
        found.append(
            (name, risk, "exact", f"{exact.beta:.2f}", f"{exact.risk:.4f} ± {at_choice:.4f}")
            + ("", "", "")
        )
        for label, model in APPROXIMATIONS.items():
            result = calibrate(model, X, y, KFold(5), risk=risk)
            gap = result.curve(BETAS) - truth
            worst = int(np.argmax(np.abs(gap)))
            cost = exact.curve(result.beta) - exact.risk
            found.append(
                ("", "", label, f"{result.beta:.2f}", f"{result.risk:.4f}")
                + (
                    f"{gap[worst]:+.4f} ± {errors[worst]:.4f}",
                    f"{BETAS[worst]:.2f}",
                    f"{cost:z.4f}",
                )
            )
    return found


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore", BoundWarning)
    print("| " + " | ".join(HEAD) + " |")
    print("|" + "---|" * len(HEAD))
    for name, setting in SETTINGS.items():
        for line in lines(name, setting):
            print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
