"""
A hierarchical model that pools too little
==========================================

Sixteen hospitals report their infections in each of six months. A hierarchical Poisson model in
NumPyro estimates a rate for every hospital, and pools them the more, the more alike they seem. But
infections come in outbreaks, so counts scatter more than a Poisson distribution allows. The model
mistakes outbreaks for differences between hospitals, and pools too little.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
from sklearn.model_selection import PredefinedSplit

from temperance import calibrate, models
from temperance.strategies import FromSplitter

HOSPITALS, MONTHS = 16, 6
rng = np.random.default_rng(2)
truth = 2 + 0.25 * rng.standard_normal(HOSPITALS)
X = np.repeat(np.arange(HOSPITALS), MONTHS)[:, None]
month = np.tile(np.arange(MONTHS), HOSPITALS)
y = rng.poisson(np.exp(truth[X[:, 0]]) * rng.gamma(1.5, 1 / 1.5, len(X)))


def infections(X, y):
    """Counts by hospital, whose log rates are spread around a common mean."""
    mean = numpyro.sample("mean", dist.Normal(2.0, 1.0))
    spread = numpyro.sample("spread", dist.HalfNormal(0.5))
    with numpyro.plate("hospitals", HOSPITALS):
        deviation = numpyro.sample("deviation", dist.Normal(0.0, 1.0))
    log_rate = mean + spread * deviation
    with numpyro.plate("rows", len(y)):
        numpyro.sample("y", dist.Poisson(jnp.exp(log_rate[X[:, 0].astype(int)])), obs=y)


# %%
# The first three months train, and the last three test. The bounds allow for beta up to 1: the
# likelihood may be trusted less than Bayes trusts it, but not more.

model = models.NumPyroModel(infections, chains=2, draws=250, warmup=150)
later = FromSplitter(PredefinedSplit(np.where(month < 3, -1, 0)))
calibration = calibrate(model, X, y, later, bounds=(0, 1), risk="gibbs")
print(calibration)

# %%
# The left panel shows the estimated risk of a draw from the posterior, with twice its Monte Carlo
# error as a band. The right panel shows 95 % intervals of the rates; hospitals are sorted by their
# true rate. The 48 tested rows alone cannot tell how much there is to gain: the gain is smaller
# than its standard error. But here the truth is known. The tempered model pools more: six noisy
# months say little about a single hospital. Its intervals cover the truth more often than those of
# Bayes, and its estimates are closer to it on average.


def rates(posterior):
    """Return draws of every hospital's rate."""
    draws = posterior["posterior"]
    mean, spread = (draws[name].values.reshape(-1, 1) for name in ("mean", "spread"))
    return np.exp(mean + spread * draws["deviation"].values.reshape(-1, HOSPITALS))


posteriors = {
    "Bayes": (model.posterior(X, y, alpha=len(y)), "#6E6E6E"),
    f"β = {calibration.beta:.2f}": (calibration.posterior, "#D55E00"),
}
order = np.argsort(truth)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(2, 3))
betas = np.geomspace(0.01, 1, 100)
risk, error = calibration.curve(betas), calibration.table.error(betas)
left.fill_between(
    betas, risk - 2 * error, risk + 2 * error, color="#0072B2", alpha=0.2, linewidth=0
)
left.plot(betas, risk, color="#0072B2", linewidth=2.5)
left.plot(calibration.beta, calibration.risk, "o", color="#D55E00", markersize=9)
left.axvline(1, color="#6E6E6E", linestyle=(0, (4, 3)))
left.set(xscale="log", xlabel="β", ylabel="estimated risk of a draw")
left.set_xticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
for shift, (name, (posterior, colour)) in zip((-0.15, 0.15), posteriors.items(), strict=True):
    draws = rates(posterior)[:, order]
    low, middle, high = np.quantile(draws, [0.025, 0.5, 0.975], axis=0)
    covered = np.sum((low < np.exp(truth[order])) & (np.exp(truth[order]) < high))
    distance = np.sqrt(np.mean((middle - np.exp(truth[order])) ** 2))
    print(f"{name}: {covered} of {HOSPITALS} covered, root mean square error {distance:.2f}")
    right.errorbar(
        np.arange(HOSPITALS) + shift, middle, [middle - low, high - middle], fmt="o", color=colour,
        markersize=5, linewidth=2, label=name,
    )  # fmt: skip
right.plot(
    np.exp(truth[order]), "_", color="black", markersize=20, markeredgewidth=2, label="truth"
)
right.set(xlabel="hospital", ylabel="infections a month", xticks=[], ylim=(0, None))
right.legend(frameon=False, loc="upper left", ncols=3)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
