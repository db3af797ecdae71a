"""
Noisy labels
============

Points on a plane belong to two classes, and three labels in ten are wrong. The model does not know
that labels can be wrong. With sixty basis functions it fits many of the wrong ones. The tempered
model trusts each label less.
"""

import matplotlib.pyplot as plt
import numpy as np

from temperance import calibrate, models

rng = np.random.default_rng(5)
centres = rng.uniform(-3, 3, (60, 2))


def bumps(points):
    """Return a column for each centre, highest there."""
    squares = ((points[:, None] - centres) ** 2).sum(axis=2)
    return np.exp(-squares / 2)


def draw(n):
    """Return points of two half circles, and labels of which three in ten are flipped."""
    label = rng.integers(0, 2, n)
    angle = rng.uniform(0, np.pi, n) + np.pi * label
    points = 1.7 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.35 * rng.standard_normal(
        (n, 2)
    )
    points += np.column_stack([0.85 - 1.7 * label, 0.4 * label - 0.2])
    flipped = rng.random(n) < 0.3
    return points, np.where(flipped, 1 - label, label)


points, y = draw(120)
new_points, new_y = draw(4000)
model = models.LaplaceLogistic(prior_cov=100.0)
calibration = calibrate(model, bumps(points), y)
print(calibration)

# %%
# The panels show the probability of the orange class. Bayes is nearly certain where a probability
# of seven in ten would be right, and its forecasts of new labels are no better than those of a
# coin, whose log score is -0.693. The stack over beta is less certain, and better.

axis = np.linspace(-3.6, 3.6, 90)
plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
posteriors = {
    "Bayes, β = 1": model.posterior(bumps(points), y, alpha=len(y)),
    f"tempered, median β = {calibration.beta:.2f}": calibration.posterior,
}
fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", sharey=True)
for ax, (name, posterior) in zip(axes, posteriors.items(), strict=True):
    height = posterior.predict(bumps(plane)).reshape(90, 90)
    drawn = ax.contourf(axis, axis, height, levels=np.linspace(0, 1, 21), cmap="PuOr_r")
    for label, colour in ((0, "#5e3c99"), (1, "#e66101")):
        ax.scatter(*points[y == label].T, s=26, color=colour, edgecolor="white", linewidth=0.7)
    forecast = posterior.predict(bumps(new_points))
    score = np.log(np.where(new_y == 1, forecast, 1 - forecast)).mean()
    ax.set_title(f"{name}\nlog score of new labels {score:.3f}", fontsize="medium", loc="left")
    ax.set(xticks=[], yticks=[], aspect="equal")
fig.colorbar(drawn, ax=axes, label="probability of the orange class", shrink=0.8, ticks=[0, 0.5, 1])
