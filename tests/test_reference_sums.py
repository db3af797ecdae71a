"""Sums over rows from few scales, and shared with leave-one-out: against every row deleted."""

import pickle
import warnings

import numpy as np
import pytest
from scenarios import covariance
from temperance.models.linear.fast.deletion_sums import DeletionSums
from temperance.models.linear.fast.leave_one_out import LeaveOneOutMoments
from temperance.models.linear.fast.sums import summed
from temperance.models.linear.rows import WhitenedRows
from temperance.strategies.reference import deletions, linear
from temperance.strategies.reference.deletions import Deletions, SharedSums
from temperance.strategies.reference.new_rows import shrinkage_intensity
from temperance.strategies.reference.row_basis import second_moments
from temperance.strategies.reference.seen import observed_rows

from temperance import calibrate, models
from temperance.data import Data
from temperance.duplicates import all_distinct
from temperance.messages import TemperanceWarning
from temperance.strategies import ReferenceRisk

pytestmark = pytest.mark.usefixtures("shortcuts")

CASES = [
    "plain",
    "huge row",
    "weights",
    "copies",
    "few rows",
    "as many rows",
    "columns of all sizes",
]


def rows_seen(case, n=60, d=4):
    rng = np.random.default_rng(3)
    if case in ("few rows", "as many rows"):
        n, d = (6, 11) if case == "few rows" else (9, 9)
    Z, counts = rng.standard_normal((n, d)) @ covariance(d), np.ones(n)
    if case == "huge row":
        Z[3] *= 30
    elif case == "weights":
        counts = rng.uniform(0.3, 4.0, n)
    elif case == "copies":
        counts = rng.integers(1, 4, n).astype(float)
    elif case == "columns of all sizes":
        Z *= np.geomspace(1, 30, d)
    y = Z @ (rng.standard_normal(d) / np.linalg.norm(Z, axis=0)) * 3 + rng.standard_normal(n)
    return observed_rows(Z, y, counts, models.GaussianLinear().prior(d))


def naive_means(observed, kappa):
    """Both means, from the dense posterior of each kappa, rows deleted by inverses."""
    Z, r, w = observed.coordinates, observed.rows.response, observed.counts
    found = []
    for each in kappa:
        K = Z @ Z.T * np.sqrt(np.outer(w, w))
        inverse = np.linalg.inv(np.eye(len(Z)) + each * K)
        h = 1 - np.diag(inverse)
        error = inverse @ (np.sqrt(w) * r) / np.sqrt(w)
        kept = 1 - h * np.minimum(w, 1) / w
        found.append([h @ (error**2 / kept), h @ (1 / kept)] / h.sum())
    return np.array(found).T


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("most", [1000, 0], ids=["from few", "from all"])
class TestMeans:
    def test_they_are_those_of_dense_matrices(self, case, most, monkeypatch):
        observed, kappa = rows_seen(case), np.geomspace(0.05, 20.0, 23)
        monkeypatch.setattr(Deletions, "shared", None)
        found = Deletions(observed, 0.05, 20.0, most)
        expected = naive_means(observed, kappa)
        # Inverses of matrices that are far from orthogonal know fewer digits.
        rtol = 1e-7 if case == "columns of all sizes" else 1e-9
        np.testing.assert_allclose(found.means(kappa), expected, rtol=rtol)
        np.testing.assert_allclose(found.means(kappa), found._direct(kappa), rtol=1e-11)
        assert (found._interpolant is None) == (most == 0)

    def test_so_is_the_noise_of_rows(self, case, most):
        observed, kappa = rows_seen(case), np.geomspace(0.05, 20.0, 23)
        weight = np.random.default_rng(0).dirichlet(np.ones(23))
        every = np.zeros(len(observed.counts))
        for part, square, _, _ in deletions.studentised(observed, kappa):
            every[part] = weight @ square
        found = Deletions(observed, 0.05, 20.0, most).row_noise(kappa, weight)
        np.testing.assert_allclose(found, every, rtol=1e-9, atol=1e-11 * every.max())


@pytest.mark.parametrize("most", [1000, 0], ids=["from few", "from all"])
def test_noise_of_rows_that_are_fitted_exactly_is_what_is_left(most):
    """At large kappas residuals all but vanish, beside those at small ones."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((11, 3))
    observed = observed_rows(Z, Z @ np.ones(3), np.ones(11), models.GaussianLinear().prior(3))
    kappa, weight = np.geomspace(1.0, 1e13, 40), np.zeros(40)
    weight[25:] = 1 / 15
    every = np.zeros(11)
    for part, square, _, _ in deletions.studentised(observed, kappa):
        every[part] = weight @ square
    found = Deletions(observed, 1.0, 1e13, most).row_noise(kappa, weight)
    np.testing.assert_allclose(found, every, rtol=1e-9)


class TestShared:
    @pytest.mark.parametrize("case", ["plain", "columns of all sizes", "huge row"])
    @pytest.mark.parametrize("pairwise", [False, True])
    def test_sums_are_those_of_every_row_deleted(self, case, pairwise):
        observed = rows_seen(case)
        beta = np.array([0.0, 1e-3, 0.4, 1.0, 3.0, 40.0])
        shared = SharedSums(
            observed.leave_one_out, observed.leave_one_out.deletion_sums, observed.basis, lowest=0.1
        )
        assert (shared.interpolant is not None) == (case != "huge row")
        assert case != "columns of all sizes" or 0 < shared.interpolant.variable.lowest
        (every,) = (summed(part, pairwise) for part in observed.leave_one_out.moments(beta))
        (found,) = shared.sums(beta, pairwise)
        for name in ("square", "spread", "d_square", "d_spread", "tested"):
            ours, theirs = getattr(found, name), getattr(every, name)
            np.testing.assert_allclose(
                ours, theirs, rtol=1e-10, atol=1e-12 * np.abs(theirs).max(), err_msg=name
            )
        assert found.exposure.sum() == pytest.approx(every.exposure.sum())

    def test_means_are_those_of_the_reference_alone(self, monkeypatch):
        kappa, both = np.geomspace(0.1, 10.0, 9), Deletions(rows_seen("plain"), 0.1, 10.0, 1000)
        shared = both.means(kappa)
        monkeypatch.setattr(Deletions, "shared", None)
        alone = Deletions(both.observed, 0.1, 10.0, 1000).means(kappa)
        np.testing.assert_allclose(shared, alone, rtol=1e-11)

    def test_what_little_is_left_of_the_responses_is_not_shared(self):
        observed = rows_seen("plain")
        loud = WhitenedRows(
            observed.rows.inputs,
            observed.rows.response + 100 * observed.Z[:, 0],
            observed.rows.scale,
        )
        once = LeaveOneOutMoments(loud, observed.leave_one_out.plan)
        assert SharedSums(once, once.deletion_sums, observed.basis, 0.1).interpolant is None
        assert (
            SharedSums(
                observed.leave_one_out, observed.leave_one_out.deletion_sums, observed.basis, 0.1
            ).interpolant
            is not None
        )

    def test_an_interpolation_that_begins_too_late_is_not_shared(self):
        observed = rows_seen("columns of all sizes")
        begins = observed.leave_one_out.deletion_sums.variable_from(0.0).lowest
        for lowest in (begins / 2, 2 * begins):
            shared = SharedSums(
                observed.leave_one_out, observed.leave_one_out.deletion_sums, observed.basis, lowest
            )
            assert (shared.interpolant is not None) == (lowest > begins)


def problem(n=400, d=6, noise=3.0):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, d))
    return Data(X, X[:, 0] / 4 + noise * rng.standard_normal(n), np.ones(n))


def chosen(data, model, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TemperanceWarning)
        return calibrate(model, data.X, data.y, ReferenceRisk(), weights=data.weights, **options)


def numbers(found):
    own = (found.beta, found.risk, found.bayes_risk, found.standard_error)
    return [*own, found.gain_standard_error]


@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize(
    "model",
    [
        models.GaussianLinear(1.0),
        models.GaussianLinear(2.0, 0.1, covariance(6)),
        models.NormalInverseGammaLinear(),
    ],
    ids=["known", "full prior", "unknown"],
)
def test_sharing_changes_no_choice(model, risk, monkeypatch):
    data = problem()
    shared = chosen(data, model, risk=risk)
    assert model.reference_curve(data, data.weights, risk).left_out is not None
    monkeypatch.setattr(Deletions, "shared", None)
    assert model.reference_curve(data, data.weights, risk).left_out is None
    np.testing.assert_allclose(numbers(chosen(data, model, risk=risk)), numbers(shared), rtol=1e-8)
    monkeypatch.setattr(
        linear, "deletions_for", lambda observed, _: Deletions(observed, 0.0, 1.0, 0)
    )
    np.testing.assert_allclose(numbers(chosen(data, model, risk=risk)), numbers(shared), rtol=1e-8)


def test_rows_that_weigh_otherwise_share_nothing():
    data = problem()
    weights = np.linspace(0.5, 2.0, len(data))
    model = models.GaussianLinear(1.0)
    uneven = Data(data.X, data.y, weights)
    assert model.reference_curve(uneven, data.weights).left_out is None
    assert model.reference_curve(uneven, weights).left_out is None


def test_the_rows_are_multiplied_out_once_and_deleted_once(monkeypatch):
    data, grams, passes = problem(), [], []
    gram, deleted = WhitenedRows.gram, DeletionSums.fitted

    def counted_gram(self, *arguments, **options):
        grams.append(len(self))
        return gram(self, *arguments, **options)

    def counted_pass(self, kappa):
        passes.append(len(kappa))
        return deleted(self, kappa)

    monkeypatch.setattr(WhitenedRows, "gram", counted_gram)
    monkeypatch.setattr(DeletionSums, "fitted", counted_pass)
    monkeypatch.setattr(deletions, "studentised", None)
    chosen(data, models.GaussianLinear(1.0))
    assert grams.count(len(data)) == 1 and len(passes) == 1 and passes[0] < 20


def test_a_calibration_that_shares_can_be_sent_to_other_processes():
    found = chosen(problem(), models.GaussianLinear(1.0))
    again = pickle.loads(pickle.dumps(found))
    assert numbers(again) == numbers(found)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n, d", [(50, 3), (700, 300), (301, 1), (20, 45)])
def test_shrinkage_from_known_moments_is_that_from_rows(n, d, weighted):
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    weights = rng.uniform(0.5, 3.0, n) if weighted else np.ones(n)
    share = weights / weights.sum()
    X = Z / np.sqrt(share @ Z**2)
    products = (share[:, None] * X).T @ X
    fourths = (share[:, None] * X**2).T @ X**2
    off = ~np.eye(d, dtype=bool)
    squares = (products[off] ** 2).sum()
    expected = (fourths[off].sum() - squares) / (weights.sum() * squares) if d > 1 else 0.0
    assert shrinkage_intensity(Z, weights) == pytest.approx(expected, rel=1e-10)
    if d <= n:
        known = shrinkage_intensity(Z, weights, second_moments(Z, share))
        assert known == pytest.approx(expected, rel=1e-10)


class TestDistinct:
    @pytest.mark.parametrize("n", [0, 1, 2, 70_000])
    @pytest.mark.parametrize("draw", ["normal", "whole", "halves"])
    def test_it_is_what_sorting_says(self, n, draw):
        rng = np.random.default_rng(0)
        values = {
            "normal": rng.standard_normal(n),
            "whole": rng.permutation(n).astype(float),
            "halves": (rng.permutation(n) - n // 2) / 2**20,
        }[draw]
        assert all_distinct(values)
        for first, second in rng.integers(0, max(n, 1), (30, 2)):
            if first != second:
                copied = values.copy()
                copied[first] = copied[second]
                assert not all_distinct(copied)

    def test_zeros_are_equal_whatever_their_sign(self):
        assert not all_distinct(np.array([1.0, -0.0, 2.0, 0.0]))

    def test_strided_and_single_numbers(self):
        values = np.random.default_rng(0).standard_normal((1000, 2))
        assert all_distinct(values[:, 0])
        assert all_distinct(np.arange(1000, dtype=np.float32))
        assert not all_distinct(np.ones(1000, dtype=np.float32))
