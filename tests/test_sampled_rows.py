"""Rows of any shape, which a model carries."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from temperance import models
from temperance.checks import as_data
from temperance.data import Data
from temperance.models.sampled.numpyro_model import tempered_sites
from temperance.models.sampled.settings import SMC

RNG = np.random.default_rng(0)
IMAGES = RNG.standard_normal((9, 4, 3))
KINDS = RNG.integers(0, 2, 9)
PRIOR = dist.Normal().expand([4, 3])


def loss(theta, x, y):
    assert x["image"].shape == (4, 3) and x["length"].dtype.kind == y.dtype.kind == "i"
    return jnp.logaddexp(0.0, (1 - 2 * y) * jnp.sum(theta * x["image"]) / x["length"])


def carrying(**options):
    data = ({"image": IMAGES, "length": np.full(9, 2)}, KINDS)
    return models.GibbsModel(loss, PRIOR, data=data, sampler=SMC(islands=8), **options)


def test_images_integers_and_pytrees():
    model = carrying()
    np.testing.assert_array_equal(model.y, KINDS.astype(float))
    tree = model.posterior(model.X, model.y, 0.0, np.arange(9.0))  # row 0 is left out
    theta = tree["posterior"]["theta"].values.reshape(-1, 4, 3)
    logits = np.einsum("sij,nij->sn", theta, IMAGES[1:]) / 2
    expected = np.logaddexp(0.0, (1 - 2 * KINDS[1:]) * logits)
    found = -tree["log_likelihood"]["y"].values.reshape(len(theta), 8)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_rows_are_known_by_number():
    model = carrying()
    X, y = model.rows(Data(np.array([[5.0], [2.0]]), model.y[[5, 2]], np.ones(2)))
    np.testing.assert_array_equal(X["image"], IMAGES[[5, 2]])
    assert y.dtype == KINDS.dtype
    with pytest.raises(ValueError, match=r"X must be model\.X, the numbers of the 9 rows"):
        model.check(as_data(np.ones((9, 2)), model.y))
    several = models.GibbsModel(loss, PRIOR, data=(IMAGES, {"a": KINDS, "b": KINDS}))
    np.testing.assert_array_equal(several.y, np.arange(9.0))


def test_numpyro():
    def regression(X, y):
        theta = numpyro.sample("theta", dist.Normal().expand([4, 3]).to_event(2))
        assert X.shape[1:] == (4, 3) and y.dtype.kind == "i"
        numpyro.sample("y", dist.Bernoulli(logits=(X * theta).sum((1, 2))), obs=y)

    model = models.NumPyroModel(regression, data=(IMAGES, KINDS))
    arguments = model.rows(as_data(model.X, model.y))
    assert tempered_sites(regression, arguments, None) == ("y",)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (IMAGES, "data must be a pair"),
        ((IMAGES, KINDS[:3]), r"data must have the same rows in X and y, got shapes \[\(9, 4, 3"),
        ((IMAGES, 3.0), "data must have the same rows"),
    ],
)
def test_refusals(data, message):
    with pytest.raises(ValueError, match=message):
        models.GibbsModel(loss, PRIOR, data=data)


def test_without_rows():
    with pytest.raises(ValueError, match="data must be given for GibbsModel to carry rows"):
        _ = models.GibbsModel(loss, PRIOR).y
