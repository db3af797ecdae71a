"""Sums over rows at points of several training sets are what a naive computation gives."""

import numpy as np
import pytest

from temperance import calibrate, losses, models
from temperance.strategies import KFold
from temperance.streaming import calibrate_blocks, modes
from temperance.streaming.folds import partition_folds
from temperance.streaming.mode_sums import (
    ModeSums,
    SumByFold,
    SumOutsideFolds,
    as_forms,
    products,
)
from temperance.streaming.partitions import Blocks
from tests.test_streaming_modes import in_blocks, problem, splits

MODEL = models.LaplaceLogistic(0.3, 2.0)
FOLDS, SEED, PARTITION = 3, 5, 2
pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")


def naive(rows, theta):
    """Return the sums over some rows (X, y, weights) at one point."""
    X, y, w = rows
    Z, u = X * np.sqrt(2.0), X.sum(axis=1) * 0.3 + X @ theta * np.sqrt(2.0)
    p = 1 / (1 + np.exp(-u))
    hessian = (Z.T * (w * p * (1 - p))) @ Z
    return w.sum(), w @ y, w @ (np.logaddexp(0, u) - y * u), (w * (p - y)) @ Z, hessian


def compare(sums, number, point, expected):
    weight, labels, value, gradient, hessian = expected
    np.testing.assert_allclose(sums.weight[number], weight, rtol=1e-12)
    np.testing.assert_allclose(sums.labels[number], labels, rtol=1e-12)
    np.testing.assert_allclose(sums.value[number, point], value, rtol=1e-12)
    np.testing.assert_allclose(sums.gradient[number, point], gradient, rtol=1e-10)
    np.testing.assert_allclose(sums.hessian[number, point], hessian, rtol=1e-10, atol=1e-12)


@pytest.fixture
def rows():
    return problem(50)


@pytest.fixture
def theta():
    return np.random.default_rng(1).standard_normal((FOLDS, 2, 3))


def test_sums_of_folds_and_of_the_rows_outside_of_them(rows, theta):
    fold = partition_folds(FOLDS, SEED, PARTITION).take(50)
    own = SumByFold(MODEL, FOLDS, SEED, 3, theta[0])(PARTITION, rows)
    outside = SumOutsideFolds(MODEL, FOLDS, SEED, 3, theta)(PARTITION, rows)
    for number in range(FOLDS):
        inside, others = (
            [part[each] for part in rows] for each in (fold == number, fold != number)
        )
        assert own.rows[number] == len(inside[0])
        for point in range(2):
            compare(own, number, point, naive(inside, theta[0, point]))
            compare(own.others, number, point, naive(others, theta[0, point]))
            compare(outside, number, point, naive(others, theta[number, point]))
            compare(own.together, 0, point, naive(rows, theta[0, point]))


def test_batches_of_rows_do_not_matter(rows, theta, monkeypatch):
    whole = SumOutsideFolds(MODEL, FOLDS, SEED, 3, theta)(PARTITION, rows)
    monkeypatch.setattr("temperance.streaming.mode_sums.BATCH", 1)
    monkeypatch.setattr("temperance.streaming.mode_sums.FEW_ROWS", 2)
    for one, other in zip(
        whole, SumOutsideFolds(MODEL, FOLDS, SEED, 3, theta)(PARTITION, rows), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_some_rows_stand_for_all(rows, theta):
    some = SumByFold(MODEL, FOLDS, SEED, 3, theta[0], every=4)(PARTITION, rows)
    fold = partition_folds(FOLDS, SEED, PARTITION).take(50)
    X, y, w = rows
    for number in range(FOLDS):
        all_rows = np.flatnonzero(fold == number)
        taken = all_rows[::4]
        factor = w[all_rows].sum() / w[taken].sum()
        compare(some, number, 0, naive((X[taken], y[taken], factor * w[taken]), theta[0, 0]))
        assert some.rows[number] == len(taken)


def test_products_and_forms():
    rng = np.random.default_rng(0)
    Z, root = rng.standard_normal((7, 4)), rng.standard_normal((2, 4, 4))
    S = root @ root.swapaxes(1, 2)
    np.testing.assert_allclose(as_forms(S) @ products(Z), np.einsum("nj,mjk,nk->mn", Z, S, Z))
    sums = ModeSums.zero(0, 1, 1, 4)._replace(gradient=np.zeros((1, 7, 4)))
    packed = sums._replace(packed=products(Z).T[None])
    np.testing.assert_array_equal(packed.hessian[0], Z[:, :, None] * Z[:, None])


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Poisson(), losses.Probit()])
def test_losses_to_second_order(loss):
    u = np.concatenate([-np.geomspace(1e-8, 500, 20), [0.0], np.geomspace(1e-8, 30, 20)])
    for y in (np.zeros_like(u), np.ones_like(u)):
        found = loss.to_second_order(u, y)
        first, second, _ = loss.derivatives(u, y)
        for one, other in zip(found, (loss.value(u, y), first, second), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-300)


@pytest.fixture
def recorded(monkeypatch):
    """Return what all passes were asked for."""
    asked = []

    def total(self, statistic, before=Blocks.total):
        asked.append(statistic)
        return before(self, statistic)

    monkeypatch.setattr(Blocks, "total", total)
    return asked


BETAS = np.append(0.0, np.geomspace(1e-6, 3.0, 8))


def test_modes_of_many_rows_are_found_near_those_of_some(recorded, monkeypatch):
    monkeypatch.setattr(modes, "ENOUGH", 10)
    X, y, w = problem(600)
    found = calibrate_blocks(MODEL, in_blocks(X, y, w), KFold(5), folds="blocks")
    expected = calibrate(MODEL, X, y, splits(600, 5, "beta"), weights=w)
    assert {each.every for each in recorded if isinstance(each, SumByFold)} == {1, 20}
    np.testing.assert_allclose(found.curve(BETAS), expected.curve(BETAS), rtol=1e-8)
    for beta in (1e-3, 1.0):
        np.testing.assert_allclose(
            found.posterior_at(beta).mean, expected.posterior_at(beta).mean, rtol=1e-7
        )


def test_passes_of_folds_are_few(recorded):
    """Points of all folds are what a pass over many rows costs; those of all rows are a tenth."""
    X, y, w = problem(2000, 4)
    calibrate_blocks(models.LaplaceLogistic(), in_blocks(X, y, w), folds="blocks")
    points = [np.size(each.theta[..., 0]) for each in recorded[1:-1]]
    assert len(points) <= 10
    assert sum(points) <= 1000  # 11 training sets at 73 nodes in one pass would be 803
