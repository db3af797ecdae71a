"""
Draws that you have already
===========================

Suppose you have draws from an ordinary posterior, from any sampler, and the log likelihood of every
row at every draw. That is enough for the leave-one-out risk at other betas: the draws are
reweighted, and nothing is fitted again. Draws support betas around their own; if the risk
still falls at the end of that range, draw again there.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from temperance import calibrate, calibrate_from_draws, models
from temperance.messages import BoundWarning

warnings.simplefilter("ignore", BoundWarning)  # it says what the loop below does
rng = np.random.default_rng(7)
X = rng.standard_normal((80, 6))
y = X @ rng.standard_normal(6) + 1.2 * rng.standard_t(4, 80)
model = models.GaussianLinear(noise_variance=2.0)


def draws_at(beta):
    """Return log likelihoods of chains, draws and rows; a formula stands for your sampler."""
    draws = model.posterior(X, y, alpha=80 * beta).sample(4000, seed=1)
    return -model.loss(draws, X, y).reshape(4, 1000, 80)


beta, found = 1.0, []
while True:
    found.append(calibrate_from_draws(draws_at(beta), beta))
    print(f"draws at {beta:.2f} support {found[-1].bounds[0]:.2f} to {found[-1].bounds[1]:.2f}")
    if not found[-1].at_bound or len(found) == 8:
        break
    beta = found[-1].beta
print(found[-1])

# %%
# Each set of draws gives a piece of the risk curve; the grey curve is exact, from refits without
# each row, in closed form. The pieces differ from it by their Monte Carlo errors. The right panel
# shows the effective number of independent draws, which falls away from the beta of the draws.

exact = calibrate(model, X, y, "leave-one-out")
betas = np.geomspace(0.1, 3, 200)
colours = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(found)))
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(3, 2))
left.plot(betas, exact.curve(betas), color="#6E6E6E", linewidth=6, alpha=0.35, label="with refits")
for colour, each in zip(colours, found, strict=True):
    own = np.geomspace(*each.bounds, 100)
    label = f"draws at {each.reliability.beta[each.reliability.effective_size.argmax()]:.2f}"
    left.plot(own, each.curve(own), color=colour, linewidth=2, label=label)
    right.plot(
        each.reliability.beta, each.reliability.effective_size, "o-", color=colour, markersize=3
    )
left.plot(found[-1].beta, found[-1].risk, "o", color="#D55E00", markersize=9, label="choice")
left.set(xlabel="β", ylabel="leave-one-out predictive risk")
right.set(xlabel="β", ylabel="effective number of draws", ylim=(0, None))
left.legend(frameon=False)
for ax in (left, right):
    ax.set_xscale("log")
    ax.set_xticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
