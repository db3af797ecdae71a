"""Forecast cancer deaths in counties by a linear model that is wrong, and see who covers.

301 counties of the USA: deaths from breast cancer, and how many women live there.  The mean is a
line; the noise is not what the model believes: it grows with the county.  Half of the counties
train, the other half test, twenty times.
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import numpy as np
from scipy import stats
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split
from statsmodels.datasets import cancer

from temperance import GibbsRegressor

LEVELS = np.array([0.5, 0.8, 0.95])


def forecasts(X, y, X_new):
    """Return the laws of new responses by three ways to use the same linear model."""
    model = GibbsRegressor().fit(X, y)
    ridge = BayesianRidge().fit(X / X.std(), y)
    mean, deviation = ridge.predict(X_new / X.std(), return_std=True)
    return {
        "GibbsRegressor()": model.forecast(X_new),
        "the same at beta = 1": model.forecast(X_new, beta=1.0),
        "BayesianRidge()": stats.norm(mean, deviation),
    }


def main() -> None:
    table = cancer.load_pandas().data
    X, y = table[["population"]].to_numpy(float), table["cancer"].to_numpy(float)
    scores: dict[str, list[np.ndarray]] = {}
    for seed in range(20):
        X_old, X_new, y_old, y_new = train_test_split(X, y, train_size=0.5, random_state=seed)
        for name, law in forecasts(X_old, y_old, X_new).items():
            density = law.log_density if hasattr(law, "log_density") else law.logpdf
            inside = np.abs(2 * law.cdf(y_new) - 1) <= LEVELS[:, None]
            row = np.array([density(y_new).mean(), *inside.mean(axis=1)])
            scores.setdefault(name, []).append(row)

    print("Forecasts of 151 counties from 150 others, mean of 20 splits:\n")
    print("                        log score   intervals of 50, 80, 95 % cover")
    for name, rows in scores.items():
        score, *covered = np.mean(rows, axis=0)
        print(f"{name:22} {score:10.3f}   " + "  ".join(f"{share:.1%}" for share in covered))

    fitted = GibbsRegressor().fit(X, y)
    print("\nOn all 301 counties:\n")
    print(fitted.calibration_)
    fitted.calibration_.plot().figure.savefig("demo.png", dpi=150)
    print("\nThe risk over beta and the weights are drawn in demo.png")


if __name__ == "__main__":
    main()
