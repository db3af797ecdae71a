"""
A million rows from disk
========================

The Gibbs risk of a linear model depends on the rows only through their second moments. So the rows
can stay on disk: one pass over blocks of them gives the whole curve over beta. This example has a
million rows of 20 columns, with heavy-tailed noise, in two files.
"""

import tempfile
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from temperance import models
from temperance.messages import BoundWarning
from temperance.streaming import blocks_of_arrays, calibrate_blocks

ROWS, COLUMNS = 1_000_000, 20
folder = tempfile.TemporaryDirectory()
rng = np.random.default_rng(0)
inputs = np.lib.format.open_memmap(
    Path(folder.name) / "X.npy", "w+", dtype=np.float32, shape=(ROWS, COLUMNS)
)
response = np.lib.format.open_memmap(Path(folder.name) / "y.npy", "w+", shape=(ROWS,))
for start in range(0, ROWS, 100_000):
    block = rng.standard_normal((100_000, COLUMNS), dtype=np.float32)
    inputs[start : start + 100_000] = block
    noise = 2 * rng.standard_t(3, 100_000)
    response[start : start + 100_000] = block.sum(axis=1) + noise

# %%
# We calibrate on the first thousand rows, the first ten thousand, and so on:

warnings.simplefilter("ignore", BoundWarning)
model = models.NormalInverseGammaLinear()
found = {}
for n in (1_000, 10_000, 100_000, ROWS):
    began = time.perf_counter()
    blocks = blocks_of_arrays(inputs[:n], response[:n])
    found[n] = calibrate_blocks(model, blocks, risk="gibbs")
    print(f"{n:9,} rows: {time.perf_counter() - began:.2f} s")

# %%
# The picture shows by how much the estimated risk exceeds its minimum, on a logarithmic axis. With
# ten times as many rows, beta can gain or lose a tenth as much. With a million rows and twenty
# columns no beta near 1 makes a difference for draws, so Bayes is good enough. To describe the
# heavy-tailed noise, use another model, or stack forecasts over beta.

betas = np.geomspace(0.02, 2.5, 200)
fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
for colour, (n, calibration) in zip(
    ("#56B4E9", "#0072B2", "#E69F00", "#D55E00"), found.items(), strict=True
):
    curve = calibration.curve(betas)
    ax.plot(betas, curve - calibration.risk, color=colour, linewidth=2.5, label=f"{n:,} rows")
ax.axvline(1, color="#6E6E6E", linestyle=(0, (4, 3)))
ax.set(
    xscale="log",
    yscale="log",
    xlabel="β",
    ylabel="risk above its minimum",
    ylim=(1e-7, 1),
    xlim=(0.018, 3.2),
)
ax.set_xticks([0.03, 0.1, 0.3, 1, 3], ["0.03", "0.1", "0.3", "1", "3"])
ax.legend(frameon=False, loc="lower left")
ax.spines[["top", "right"]].set_visible(False)
folder.cleanup()
