"""
Draws from Stan, reweighted
===========================

Survival after heart transplants at Stanford: 69 patients and their ages; 24 of them were still
alive when last seen. A Stan program has been run, and its draws are in a file. The first model
assumes that the risk of death is the same on every day after the operation. In truth the first
weeks are the dangerous ones, so the posterior of this model is too sure of itself. The draws tell
by how much, without another run.

The only change to the program that this library needs is the exponent ``beta`` of the likelihood.
It was 1 in the first run.

.. literalinclude:: ../gallery/heart.stan
   :language: stan

``docs/gallery/heart_draws.py`` made the file with PyStan; draws from any other sampler would do as
well.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from statsmodels.datasets import heart

from temperance import calibrate_from_draws
from temperance.messages import TemperanceWarning

warnings.simplefilter("ignore", TemperanceWarning)  # they ask for draws at a lower beta: see below
table = heart.load_pandas().data
time, died, age = table["survival"], table["censors"], (table["age"] - 45) / 10
stored = pd.read_csv("heart-draws.csv").fillna({"shape": 1.0})


def draws_of(model, beta):
    """Return the draws of a run, chain by chain."""
    chosen = stored[(stored["model"] == model) & (stored["beta"] == beta)]
    return chosen.sort_values("chain", kind="stable")


def log_likelihood(draws):
    """Return log_lik of the program, by chains, draws and patients."""
    level, slope, k = draws[["level", "slope", "shape"]].to_numpy().T[:, :, None]
    log_hazard = np.log(k) + level + slope * age.to_numpy() + (k - 1) * np.log(time.to_numpy())
    rows = died.to_numpy() * log_hazard - np.exp(log_hazard) * time.to_numpy() / k
    return rows.reshape(4, -1, len(table))


# %%
# At which beta do credible sets of the parameters cover? For the simple model it is about one half:
# 69 patients tell it no more about its parameters than half as many would if it were right. For a
# Weibull model, whose risk of death may fall with time, it is about 1.

exponential = draws_of("exponential", 1.0)
rate = calibrate_from_draws(log_likelihood(exponential), strategy="coverage", seed=0)
print(rate)
weibull = draws_of("weibull", 1.0)
print(calibrate_from_draws(log_likelihood(weibull), strategy="coverage", seed=0))

# %%
# Draws at beta = 1 do not reach as far as one half, so Stan was run again there. The left panel
# shows the leave-one-out risk of forecasts. Each set of draws is reweighted to the betas that it
# supports; where two sets overlap they agree up to Monte Carlo error. Tempering helps the simple
# model a little, and the Weibull model is far better at any beta: if you can mend a model, mend
# it. The right panel shows 95 % intervals of the factor by which ten more years of age multiply
# the risk of death.

tempered = draws_of("exponential", 0.5)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(3, 2))
runs = {
    "exponential, draws at β = 1": (exponential, 1.0, "#6E6E6E"),
    "exponential, draws at β = 0.5": (tempered, 0.5, "#D55E00"),
    "Weibull, draws at β = 1": (weibull, 1.0, "#0072B2"),
}
for place, (name, (draws, beta, colour)) in enumerate(runs.items()):
    found = calibrate_from_draws(log_likelihood(draws), beta, bounds=(0.1, 3))
    betas = np.geomspace(*found.supported, 100)
    left.plot(betas, found.curve(betas), color=colour, linewidth=2.5, label=name)
    left.plot(beta, found.curve(np.array([beta]))[0], "o", color=colour, markersize=8)
    low, middle, high = np.exp(np.quantile(draws["slope"], [0.025, 0.5, 0.975]))
    right.plot([low, high], [place, place], color=colour, linewidth=5, solid_capstyle="round")
    right.plot(middle, place, "o", color="white", markersize=5)
left.set(xscale="log", xlabel="β", ylabel="leave-one-out risk of forecasts")
left.set_xticks([0.3, 0.5, 1, 2, 3], ["0.3", "0.5", "1", "2", "3"])
left.minorticks_off()
left.legend(frameon=False, loc="center right")
right.axvline(1, color="#bbbbbb", linewidth=0.8, zorder=0)
right.set(xlabel="hazard ratio of ten years of age", xlim=(0.85, 3.9), ylim=(2.6, -0.6))
right.set_yticks(range(3), ["exponential\nβ = 1", "exponential\nβ = 0.5", "Weibull\nβ = 1"])
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
