"""Posteriors are what the installed ArviZ takes."""

import warnings

import numpy as np
import pytest

from temperance import models
from temperance.checks import as_data
from temperance.models.sampled.arviz_tree import arviz_tree, groups_of
from temperance.models.sampled.draws import Draws

RNG = np.random.default_rng(0)
quiet = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def az():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz")


@pytest.fixture(scope="module")
def tree():
    theta = RNG.standard_normal((4, 100, 2))
    losses = 0.5 * RNG.standard_normal((4, 100, 7)) ** 2
    return arviz_tree(
        Draws({"theta": theta, "scale": theta[..., 0] ** 2}, losses),
        {"y": np.arange(7.0)},
        {"beta": 0.5},
    )


@quiet
class TestArviZ:
    """The four functions that everybody calls."""

    def test_summary(self, az, tree):
        assert list(az.summary(tree).index) == ["theta[0]", "theta[1]", "scale"]

    def test_loo(self, az, tree):
        assert np.isfinite(az.loo(tree).elpd_loo if hasattr(az.loo(tree), "elpd_loo") else 0.0)

    @pytest.mark.parametrize("plot", ["plot_trace", "plot_forest"])
    def test_plots(self, az, tree, plot):
        import matplotlib

        matplotlib.use("Agg")
        assert getattr(az, plot)(tree) is not None
        matplotlib.pyplot.close("all")


def test_groups(tree):
    groups = groups_of(tree)
    assert list(groups) == ["posterior", "log_likelihood", "observed_data"]
    assert tree.attrs["beta"] == groups["posterior"].attrs["beta"] == 0.5
    assert groups["posterior"]["theta"].dims == ("chain", "draw", "theta_dim_0")


@quiet
def test_dims_and_coords_of_pymc():
    pm = pytest.importorskip("pymc")
    with pm.Model(coords={"group": ["a", "b"], "row": list("uvwxyz")}) as model:
        theta = pm.Normal("theta", dims="group")
        pm.Normal("y", theta[np.arange(6) % 2], 1.0, observed=np.arange(6.0), dims="row")
    ours = models.PyMCModel(model, chains=2, draws=50, warmup=50)
    data = as_data(ours.X, ours.y, np.array([1.0, 1, 1, 0, 1, 1]))
    drawn = Draws({"theta": RNG.standard_normal((2, 50, 2))}, np.ones((2, 50, 5)))
    groups = groups_of(arviz_tree(ours.labelled(drawn, data), ours.observed(data), {}))
    assert list(groups["posterior"]["theta"]["group"].values) == ["a", "b"]
    for name in ("log_likelihood", "observed_data"):
        assert list(groups[name]["y"]["row"].values) == list("uvwyz")
