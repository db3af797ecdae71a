r"""table-backbone: how the risk curve of each model and strategy is computed.

The thesis' table says where it minimises an exact criterion and where it descends Monte Carlo
gradients.  Here every pair is run once on small data, and its curve reports the method.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from temperance import calibrate, models, strategies
from temperance.messages import TemperanceWarning
from temperance.protocols import Model, Strategy
from temperance_studies.settings import AS_STATED, Version
from temperance_studies.thesis.figures.figure import Figure
from temperance_studies.thesis.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    SKY,
    WIDE,
    canvas,
    headed,
    legend_below,
)

MODELS: dict[str, tuple[str, Model]] = {
    "linear, known variance": ("exact", models.GaussianLinear()),
    "Gaussian mean": ("exact", models.GaussianMean()),
    "polynomial": ("exact", models.Polynomial(n_powers=3)),
    "linear, unknown variance": ("exact", models.NormalInverseGammaLinear()),
    "logistic, Jaakkola": ("variational", models.JaakkolaLogistic()),
    "logistic, mean-field": ("variational", models.MeanFieldLogistic()),
    "logistic, full covariance": ("variational", models.FullCovarianceLogistic()),
    "logistic, Laplace": ("approximate", models.LaplaceLogistic()),
    "logistic, Backprop": ("variational", models.MeanFieldLogistic(method="sgd", steps=20)),
}
STRATEGIES: dict[str, Strategy] = {
    "naive": strategies.Naive(),
    "splitting": strategies.SampleSplitting(),
    "bootstrap": strategies.Bootstrap(n_draws=5),
    "SafeBayes": strategies.SafeBayes(),
    "10-fold": strategies.KFold(),
    "leave-one-out": strategies.LeaveOneOut(),
}
EXACT, QUADRATURE, STOCHASTIC = "exact", "quadrature", "stochastic"
TINTS = {EXACT: BLUE, QUADRATURE: SKY, STOCHASTIC: ORANGE}
LETTERS = {EXACT: "E", QUADRATURE: "Q", STOCHASTIC: "S"}
# The thesis' method, for models that it treats.
THESIS = {
    "linear, known variance": {"bootstrap": STOCHASTIC},
    "Gaussian mean": {"bootstrap": STOCHASTIC},
    "polynomial": {"bootstrap": STOCHASTIC},
    "linear, unknown variance": {"bootstrap": STOCHASTIC},
    "logistic, Jaakkola": dict.fromkeys(STRATEGIES, STOCHASTIC),
    "logistic, Backprop": dict.fromkeys(STRATEGIES, STOCHASTIC),
}
THESIS_STRATEGIES = ("naive", "splitting", "bootstrap", "SafeBayes")


def kind(method: str) -> str:
    """Return the class of a curve's method, from its description."""
    if "Backprop" in method or "draws" in method:
        return STOCHASTIC
    return QUADRATURE if "quadrature" in method else EXACT


def table(repeats: int, seed: int, version: Version, compare: Any) -> Any:
    """Return the method of the curve for every model and strategy, on twenty rows."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 2))
    noisy = X[:, 0] + rng.standard_normal(20)
    labels = np.arange(20) % 2.0
    rows = []
    for name, (posterior, model) in MODELS.items():
        inputs = {"Gaussian mean": None, "polynomial": X[:, 0]}.get(name, X)
        y = labels if name.startswith("logistic") else noisy
        for strategy, rule in STRATEGIES.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TemperanceWarning)
                found = calibrate(model, inputs, y, rule, risk="gibbs", seed=seed).table
                method = "" if found is None else found.method
            thesis = ""
            if name in THESIS and strategy in THESIS_STRATEGIES:
                thesis = THESIS[name].get(strategy, EXACT)
            rows.append((name, posterior, strategy, method, kind(method), thesis))
    return pd.DataFrame(rows, columns=FIGURE.columns)


def draw(table: Any) -> Any:
    """Draw a cell for each pair: letter and colour of the method, the thesis' in small print."""
    from matplotlib.patches import Patch, Rectangle

    rows, columns = list(table.model.unique()), list(table.strategy.unique())
    figure = canvas(WIDE, 0.9 + 0.36 * len(rows) + 0.75)
    ax = figure.subplots()
    for _, cell in table.iterrows():
        i, j = rows.index(cell.model), columns.index(cell.strategy)
        ax.add_patch(
            Rectangle((j + 0.03, i + 0.06), 0.94, 0.88, facecolor=TINTS[cell.kind], alpha=0.45)
        )
        # An empty cell of a file is read as nan.
        thesis = cell.thesis if isinstance(cell.thesis, str) else ""
        ax.text(j + 0.5, i + 0.5, LETTERS[cell.kind], ha="center", va="center", weight="bold")
        if thesis and thesis != cell.kind:
            ax.text(
                j + 0.88, i + 0.52, LETTERS[thesis], ha="right", va="center", color="#444444",
                fontsize="small", style="italic",
            )  # fmt: skip
    posterior = table.drop_duplicates("model").posterior
    for i, (above, below) in enumerate(zip(posterior, posterior[1:], strict=False), start=1):
        if above == "exact" != below:
            ax.axhline(i, color=GREY, linewidth=1.0)
    ax.set_xlim(0, len(columns))
    ax.set_ylim(len(rows), 0)
    ax.set_yticks(np.arange(len(rows)) + 0.5, rows)
    ax.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=25, ha="left")
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    ax.spines[:].set_visible(False)
    headed(figure, "How each risk curve is computed")
    handles = [
        Patch(facecolor=TINTS[each], alpha=0.45, label=f"{LETTERS[each]}  {each}") for each in TINTS
    ]
    handles.append(Patch(facecolor="none", label="small: the thesis, where it differs"))
    legend_below(figure, handles, 2)
    return figure


FIGURE = Figure(
    label="table-backbone",
    title="Which model and strategy is exact, by quadrature or stochastic, here and in the thesis",
    columns=("model", "posterior", "strategy", "method", "kind", "thesis"),
    versions=(AS_STATED,),
    table=table,
    draw=draw,
)
