"""
SafeBayes on Grünwald's example
===============================

Half of the rows are easy: all their inputs and the response are zero. The other rows have constant
noise, and only five of 51 coefficients matter. The model is linear with unknown variance. It is
right for each kind of row alone, but not for both together: the easy rows make the noise look
small. Grünwald and van Ommen (Bayesian Analysis 12, 2017) found that Bayes then becomes *worse* as
rows are added, up to more than a hundred of them. SafeBayes, which predicts each row from those
before it, does not.
"""

import matplotlib.pyplot as plt
import numpy as np

from temperance import calibrate, models
from temperance.strategies import SafeBayes

theta = np.where(np.arange(51) < 5, 0.1, 0.0)
model = models.NormalInverseGammaLinear(a=1.0, b=1 / 40)


def draw(rng, n):
    """Return rows of which about half are zero."""
    X = np.column_stack([np.ones(n), rng.standard_normal((n, 50))])
    y = X @ theta + np.sqrt(1 / 40) * rng.standard_normal(n)
    hard = rng.random(n) < 0.5
    return X * hard[:, None], y * hard


sizes = np.array([20, 45, 70, 90, 110, 130, 160, 200, 250])
distance, betas = np.empty((2, len(sizes), 10)), np.empty((len(sizes), 10))
for i, n in enumerate(sizes):
    for seed in range(10):
        X, y = draw(np.random.default_rng(seed), n)
        safe = calibrate(model, X, y, SafeBayes(), bounds=(0, 1), risk="gibbs")
        bayes = model.posterior(X, y, alpha=n)
        betas[i, seed] = safe.beta
        for k, posterior in enumerate((bayes, safe.posterior)):
            distance[k, i, seed] = ((posterior.mean - theta) ** 2).sum()

# %%
# The left panel shows the squared distance of the posterior mean from the truth, which is also its
# excess risk on hard rows: the mean of ten data sets, and two standard errors. The right panel
# shows the beta that SafeBayes chooses.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(3, 2))
for name, colour, values in zip(
    ("Bayes", "SafeBayes"), ("#D55E00", "#0072B2"), distance, strict=True
):
    mean, error = values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(10)
    left.fill_between(
        sizes, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.15, linewidth=0
    )
    left.plot(sizes, mean, "o-", color=colour, linewidth=2, label=name)
left.set(xlabel="rows", ylabel="squared distance from the truth", ylim=(0, None))
left.legend(frameon=False)
right.plot(sizes, betas, ".", color="#0072B2", alpha=0.3)
right.plot(sizes, betas.mean(axis=1), "o-", color="#0072B2", linewidth=2)
right.axhline(1, color="#D55E00", linewidth=2)
right.set(xlabel="rows", ylabel="β", ylim=(0, 1.05))
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
