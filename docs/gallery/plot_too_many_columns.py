"""
Too many columns
================

There are forty rows and forty columns, and the model assumes an eighth of the true noise variance,
so the posterior of Bayes follows the noise. In this simulation the risk of a draw on new rows is
known, and every choice of beta can be judged, on 60 data sets.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from temperance import calibrate, expected_risk, models
from temperance.messages import BoundWarning

warnings.simplefilter("ignore", BoundWarning)
N, D, BELIEVED, ACTUAL = 40, 40, 8.0, 64.0
model = models.GaussianLinear(noise_variance=BELIEVED)
betas = np.geomspace(0.01, 3, 60)
rules = {
    "Bayes": "bayes",
    "10-fold": "k-fold",
    "leave-one-out": "leave-one-out",
    "reference risk": "reference-risk",
}


def true_risk(X, y, theta, beta):
    """Risk on rows with the second moments of all new ones: inputs are N(0, I)."""
    Z = np.sqrt(D) * np.eye(D)
    responses = [Z @ theta - np.sqrt(ACTUAL), Z @ theta + np.sqrt(ACTUAL)]
    new = np.concatenate([Z, Z]), np.concatenate(responses)
    return expected_risk(model, (X, y), new, beta * N, risk="gibbs")


curves, excess = [], {name: [] for name in rules}
for seed in range(60):
    rng = np.random.default_rng(seed)
    X, theta = rng.standard_normal((N, D)), rng.standard_normal(D)
    y = X @ theta + np.sqrt(ACTUAL) * rng.standard_normal(N)
    curves.append(true_risk(X, y, theta, betas))
    for name, rule in rules.items():
        chosen = calibrate(model, X, y, rule, risk="gibbs", seed=seed).beta
        excess[name].append(true_risk(X, y, theta, chosen) - curves[-1].min())

# %%
# On the left, each thin line is the true risk on one data set, and the thick line is their mean.
# Its minimum is far below Bayes. On the right is how much risk each strategy loses by its choice.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(3, 2))
left.plot(betas, np.transpose(curves), color="#0072B2", alpha=0.15, linewidth=1)
mean = np.mean(curves, axis=0)
left.plot(betas, mean, color="#0072B2", linewidth=3)
left.axvline(1, color="#6E6E6E", linestyle=(0, (4, 3)))
left.annotate("Bayes", (1, 12.6), xytext=(4, 0), textcoords="offset points", color="#6E6E6E")
left.plot(betas[mean.argmin()], mean.min(), "o", color="#D55E00", markersize=9)
left.set(xscale="log", xlabel="β", ylabel="true risk of a draw", ylim=(6, 13))
right.boxplot(
    list(excess.values()),
    orientation="horizontal",
    tick_labels=list(excess),
    widths=0.6,
    medianprops={"color": "#D55E00", "linewidth": 2},
    flierprops={"markersize": 3, "alpha": 0.5},
)
right.invert_yaxis()
right.set(xlabel="risk above that of the best β", xlim=(-0.1, 3.5))
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)

# %%
# Strategies that hold out rows do better than Bayes on most data sets, but badly on some, where
# forty test losses mislead them. Reference risk estimates two scales from the data instead; on
# average its excess risk is half as large.

for name, values in excess.items():
    print(f"{name:15} mean {np.mean(values):.2f}, worst {np.max(values):.2f}")
