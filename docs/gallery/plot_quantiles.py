"""
Quantiles of food expenditure
=============================

Engel's data from 1857 have the income of 235 households and their expenditure on food: the poorer a
family, the larger the share of its income that it spends on food. A quantile has no likelihood, so
beta is chosen such that credible sets cover.
"""

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import engel

from temperance import GibbsRegressor

table = engel.load_pandas().data
X, y = table[["income"]].to_numpy(), table["foodexp"].to_numpy()
income = np.linspace(400, 3000, 80)[:, None]

# %%
# The picture shows three quantile lines with 95 % bands. The bands are about the lines, not about
# households: a tenth of the households should lie below the lowest line, however wide its band is.

fig, ax = plt.subplots(figsize=(7.4, 4.8), layout="constrained")
ax.scatter(X, y, s=14, color="#6E6E6E", alpha=0.55, linewidth=0)
for quantile, colour in ((0.1, "#0072B2"), (0.5, "#009E73"), (0.9, "#D55E00")):
    model = GibbsRegressor(loss="quantile", quantile=quantile).fit(X, y)
    line, (low, high) = model.predict(income), model.predict_interval(income).T
    below = np.mean(y <= model.predict(X))
    label = f"{quantile:.0%} quantile: {below:.0%} of the households below"
    ax.fill_between(income[:, 0], low, high, color=colour, alpha=0.2, linewidth=0)
    ax.plot(income[:, 0], line, color=colour, linewidth=2, label=label)
    slope = model.coefficients().interval(0.95)[1]
    print(f"{quantile:.0%} quantile: {slope[0]:.2f} to {slope[1]:.2f} of another franc for food")
ax.set(xlabel="income", ylabel="expenditure on food", xlim=(350, 3000), ylim=(200, 2100))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper left")
plt.show()
