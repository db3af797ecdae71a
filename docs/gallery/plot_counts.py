"""
Overdispersed counts
====================

The variance of these counts is about three times their mean, but a Poisson model assumes that both
are the same, so its intervals are too short. Tempering makes them cover.
"""

import matplotlib.pyplot as plt
import numpy as np

from temperance import GibbsRegressor

rng = np.random.default_rng(0)
slopes = np.array([0.4, -0.3, 0.2, 0.0, 0.0])


def draw(n):
    """Return inputs and overdispersed counts."""
    X = rng.standard_normal((n, 5))
    mean = np.exp(1.2 + X @ slopes)
    return X, rng.poisson(mean * rng.gamma(1.5, 1 / 1.5, n))


X, y = draw(150)
poisson = GibbsRegressor(loss="poisson", target="coefficients").fit(X, y)
negative_binomial = GibbsRegressor(loss="negative-binomial", target="coefficients").fit(X, y)
print(f"Poisson: beta {poisson.inverse_temperature_:.2f}")
print(f"negative binomial: beta {negative_binomial.inverse_temperature_:.2f}")

# %%
# The picture shows 95 % intervals of the slopes. Those of the Poisson model at beta = 1 (Bayes) are
# far too short. With a beta at which they cover, they are about as long as those of the negative
# binomial model, which has a parameter for the overdispersion.

laws = {
    "Poisson, Bayes": GibbsRegressor(loss="poisson", strategy="bayes", prior_scale=10.0)
    .fit(X, y)
    .coefficients(),
    "Poisson, tempered": poisson.coefficients(),
    "negative binomial": negative_binomial.coefficients(),
}
fig, ax = plt.subplots(figsize=(7.4, 4.2), layout="constrained")
place = np.arange(5)
for shift, (name, law), colour in zip(
    (-0.2, 0.0, 0.2), laws.items(), ("#6E6E6E", "#D55E00", "#0072B2"), strict=True
):
    middle, (low, high) = law.mean[1:], law.interval(0.95)[1:].T
    ax.errorbar(
        place + shift, middle, [middle - low, high - middle], fmt="o", color=colour, capsize=4,
        label=name,
    )  # fmt: skip
ax.hlines(slopes, place - 0.35, place + 0.35, color="black", label="truth", zorder=0)
ax.axhline(0, color="#bbbbbb", linewidth=0.8, zorder=0)
ax.set(xticks=place, xticklabels=[f"slope {j + 1}" for j in place], ylabel="95 % intervals")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
