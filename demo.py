"""Calibrate a regression on the diabetes data, then look at patients it has not seen.

The model believes that its noise variance is 0.1; on this standardised response it is nearer 0.5.
Such a model trusts every observation too much.  How much should it?
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures

from temperance import calibrate, expected_risk, models


def diabetes() -> tuple[np.ndarray, np.ndarray]:
    """Squares and products of the ten inputs, standardised, with an intercept (66 columns)."""
    X, y = load_diabetes(return_X_y=True)
    Z = PolynomialFeatures(2, include_bias=False).fit_transform(X / X.std(axis=0))
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    return np.column_stack([np.ones(len(Z)), Z]), (y - y.mean()) / y.std()


def main() -> None:
    X, y = diabetes()
    order = np.random.default_rng(0).permutation(len(y))
    known, new = order[:221], order[221:]
    model = models.GaussianLinear(noise_variance=0.1)

    print("221 patients to calibrate on, 10-fold cross-validation, risk of the predictive:\n")
    calibration = calibrate(model, X[known], y[known], risk="predictive")
    print(calibration)

    print("\n221 patients never seen:\n")
    print("                 loss of the predictive   95 % intervals that cover")
    for name, alpha in (("Bayes (beta = 1)", len(known)), ("calibrated", calibration.alpha)):
        posterior = model.posterior(X[known], y[known], alpha)
        mean, deviation = posterior.predict(X[new])
        covered = np.mean(np.abs(y[new] - mean) < 1.96 * deviation)
        train, test = (X[known], y[known]), (X[new], y[new])
        loss = expected_risk(model, train, test, alpha, risk="predictive")
        print(f"{name:16s} {loss:12.3f} {covered:23.0%}")

    calibration.plot().figure.savefig("demo.png", dpi=150)
    print("\nThe curve and the choice are drawn in demo.png")


if __name__ == "__main__":
    main()
