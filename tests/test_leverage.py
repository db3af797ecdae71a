"""The HC3 correction of the sandwich: leverages of rows and groups."""

import numpy as np
import pytest

from temperance import calibrate, calibrate_from_draws, losses, models
from temperance.data import Data
from temperance.strategies import Sandwich
from temperance.uncertainty.information import Units, sandwich_root
from temperance_studies.study.identity import canonical

FAR = (0.0, 1e6)


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
    return X, X @ [1.0, 2.0, 0.0] + np.abs(X[:, 1]) * rng.standard_normal(n)


def covariance(information, units, correction):
    root = sandwich_root(information, units, correction)
    return root @ root.T


class TestLinear:
    def test_rows_have_the_textbook_covariance(self):
        """(Z'Z)^-1 Z' diag(e_i^2 / (1 - h_i)^2) Z (Z'Z)^-1."""
        X, y = rows()
        model = models.NormalInverseGammaLinear()
        found = calibrate(model, X, y, "sandwich").sandwich(correction="HC3")
        inverse = np.linalg.inv(X.T @ X)
        h = np.einsum("ij,jk,ik->i", X, inverse, X)
        e = (y - X @ inverse @ X.T @ y) / (1 - h)
        expected = inverse @ (X.T * e**2) @ X @ inverse
        assert found.std == pytest.approx(np.sqrt(np.diag(expected)), rel=1e-9)
        # p / tr(J^-1 I), in units of the posterior's covariance v (Z'Z)^-1.
        v = np.mean((y - X @ inverse @ X.T @ y) ** 2)
        rate = 3 / np.trace(np.linalg.solve(v * inverse, expected))
        chosen = calibrate(model, X, y, Sandwich(correction="HC3"), bounds=FAR)
        assert chosen.beta == pytest.approx(rate, rel=1e-9)
        assert chosen.sandwich().std == pytest.approx(found.std)

    def test_groups_are_left_out_exactly(self):
        """Sums over groups of the squared moves of the minimiser without the group."""
        X, y = rows(60)
        groups = np.arange(60) // 3
        full = np.linalg.lstsq(X, y)[0]
        moves = [np.linalg.lstsq(X[groups != g], y[groups != g])[0] - full for g in range(20)]
        information = models.GaussianLinear(2.0).information(Data(X, y, np.ones(60)))
        found = covariance(information, Units(Data(X, y, np.ones(60)), groups), "HC3")
        assert found == pytest.approx(np.transpose(moves) @ moves, rel=1e-9)

    def test_groups_of_one_row_are_rows(self):
        X, y = rows()
        data = Data(X, y, np.ones(40))
        information = models.GaussianLinear(2.0).information(data)
        one, other = (
            covariance(information, Units(data, labels), "HC3") for labels in (None, np.arange(40))
        )
        assert one == pytest.approx(other, rel=1e-9)

    def test_a_row_that_determines_a_direction_does_no_harm(self):
        X, y = rows()
        X = np.column_stack([X, np.eye(40)[0]])  # the first row alone has the last column
        data = Data(X, y, np.ones(40))
        information = models.GaussianLinear(2.0).information(data)
        assert np.isfinite(covariance(information, Units(data), "HC3")).all()


@pytest.mark.parametrize(
    ("model", "binary"),
    [
        (models.GaussianLinear(2.0), False),
        (models.LaplaceLogistic(), True),
        (models.GibbsLinear(losses.Poisson()), True),
        (models.GibbsLinear(losses.Pinball(0.5)), False),
    ],
    ids=["linear", "logistic", "Poisson", "pinball"],
)
def test_weights_are_copies_and_the_correction_lowers_beta(model, binary):
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(60), rng.standard_normal((60, 2))])
    y = (rng.random(60) < 0.5).astype(float) if binary else rng.standard_normal(60)
    weights = rng.integers(1, 4, 60).astype(float)
    times = weights.astype(int)
    strategy = Sandwich(correction="HC3")
    beta = calibrate(model, X, y, strategy, bounds=FAR, weights=weights).beta
    copies = calibrate(model, np.repeat(X, times, 0), np.repeat(y, times), strategy, bounds=FAR)
    assert copies.beta == pytest.approx(beta, rel=1e-6)
    assert beta < calibrate(model, X, y, Sandwich(), bounds=FAR, weights=weights).beta


def test_refusals():
    with pytest.raises(ValueError, match="correction must be one of 'HC0', 'HC3', got 'HC2'"):
        Sandwich(correction="HC2")
    X, y = rows()
    with pytest.raises(ValueError, match="correction must be one of 'HC0', 'HC3', got 'HC2'"):
        calibrate(models.GaussianLinear(), X, y, "sandwich").sandwich(correction="HC2")
    known = models.GaussianLinear(2.0)
    draws = known.posterior(X, y, alpha=40).sample(1000, seed=0)
    log_likelihood = -known.loss(draws, X, y).reshape(4, 250, 40)
    with pytest.raises(ValueError, match="correction must be 'HC0' for a model whose"):
        calibrate_from_draws(log_likelihood, strategy=Sandwich(correction="HC3"))


def test_stored_studies_keep_their_identity():
    """A field that was added later is not part of it unless it is used."""
    assert "correction" not in canonical(Sandwich())
    assert '"correction":"HC3"' in canonical(Sandwich(correction="HC3"))
