"""Calibrate a regression on half of the diabetes data, then look at the other half.

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
    """Ten inputs with their squares and products, and a constant: 66 columns."""
    X, y = load_diabetes(return_X_y=True)
    return PolynomialFeatures(2).fit_transform(X / X.std(axis=0)), (y - y.mean()) / y.std()


def main() -> None:
    X, y = diabetes()
    known, new = slice(0, None, 2), slice(1, None, 2)
    model = models.GaussianLinear(noise_variance=0.1)

    print(f"Calibrated on {len(y[known])} patients, every other one:\n")
    calibration = calibrate(model, X[known], y[known], risk="predictive")
    print(calibration)

    print(f"\nTested on the other {len(y[new])}:\n")
    print("                   loss of the predictive   95 % intervals that cover")
    for name, alpha in (("Bayes (beta = 1)", len(y[known])), ("calibrated", calibration.alpha)):
        posterior = model.posterior(X[known], y[known], alpha)
        mean, deviation = posterior.predict(X[new])
        covered = np.mean(np.abs(y[new] - mean) < 1.96 * deviation)
        train, test = (X[known], y[known]), (X[new], y[new])
        loss = expected_risk(model, train, test, alpha, risk="predictive")
        print(f"{name:16s} {loss:16.3f} {covered:24.0%}")

    calibration.plot().figure.savefig("demo.png", dpi=150)
    print("\nThe curve and the choice are drawn in demo.png")


if __name__ == "__main__":
    main()
