"""Folds of many rows, drawn by a hash of their values."""

import numpy as np
import pytest
from scipy import stats

from temperance import calibrate, models, strategies
from temperance.rows import hashing as row_keys
from temperance.rows.duplicates import number_rows
from temperance.rows.hashing import MOST_SHARED, parts_of, shared_weight, telling_keys
from temperance.strategies.k_fold import MANY, MANY_PER_FOLD
from temperance.types import Data, FoldPlan, Plan

N = MANY + 4000
AT_BOUND = pytest.mark.filterwarnings("ignore::temperance.diagnostics.BoundWarning")
MODEL = models.GaussianLinear(noise_variance=2.0)


def rows(n=N, d=2, seed=0):
    """Return rows of which no two are the same."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return Data(X, X.sum(axis=1) + 3 * rng.standard_normal(n), np.ones(n))


def taken(data, which):
    return Data(data.X[which], data.y[which], data.weights[which])


def folds(data, strategy=None, seed=3):
    _, plan = (strategy or strategies.KFold()).planned(data, np.random.default_rng(seed))
    return plan.fold


STRUCTURED = {
    "random": lambda n: np.random.default_rng(0).standard_normal(n),
    "single precision": lambda n: np.random.default_rng(0).random(n, dtype=np.float32) + 0.0,
    "integers": lambda n: np.arange(n) + 0.0,
    "negative integers": lambda n: -np.arange(n) - 1.0,
    "a grid": lambda n: np.linspace(0, 1, n),
    "cents": lambda n: np.arange(n) / 100,
    "tiny": lambda n: np.arange(n) * 1e-310,
    "all magnitudes": lambda n: np.ldexp(1 + np.arange(n) / n, np.arange(n) % 1000 - 500),
}


def p_values(response, keys_of, draws=60):
    """Test each draw's folds for equal sizes, and for independence of the response's deciles."""
    decile = np.argsort(np.argsort(response)) * 10 // len(response)
    found = []
    for seed in range(draws):
        fold = parts_of(keys_of(seed), 7)
        table = np.zeros((7, 10))
        np.add.at(table, (fold, decile), 1)
        found.append([stats.chisquare(table.sum(1)).pvalue, stats.chi2_contingency(table).pvalue])
    return np.array(found).T


@pytest.mark.parametrize("draw", STRUCTURED.values(), ids=STRUCTURED)
def test_folds_are_drawn_by_chance_whatever_the_response(draw):
    response = draw(20_000).astype(float)
    data = Data(np.empty((len(response), 0)), response, np.ones(len(response)))
    sizes, independence = p_values(
        response, lambda seed: telling_keys(data, np.random.default_rng(seed))
    )
    for found in (sizes, independence):
        assert stats.kstest(found, "uniform").pvalue > 1e-3


def test_bits_that_are_not_mixed_are_no_chance():
    response = STRUCTURED["integers"](20_000)
    _, independence = p_values(
        response,
        lambda seed: (
            response.view(np.uint64)
            * (np.random.default_rng(seed).integers(2**64, dtype=np.uint64) | np.uint64(1))
        ),
    )
    assert stats.kstest(independence, "uniform").pvalue < 1e-6


def test_neighbours_fall_into_folds_independently():
    data = Data(np.empty((N, 0)), np.arange(N) + 0.0, np.ones(N))
    fold = folds(data, strategies.KFold(5))
    together = fold[1:] == fold[:-1]
    assert abs(together.mean() - 0.2) < 4 * together.std() / np.sqrt(N)


def test_parts_are_cut_evenly():
    keys = np.array([0, 2**62, 2**63, 2**64 - 1], dtype=np.uint64)
    np.testing.assert_array_equal(parts_of(keys, 4), [0, 1, 2, 3])
    np.testing.assert_array_equal(parts_of(keys, 2**31), [0, 2**29, 2**30, 2**31 - 1])


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_shared_weight_is_the_weight_behind_a_key(copies):
    rng = np.random.default_rng(copies)
    keys = rng.integers(2**64, size=30_000, dtype=np.uint64)
    weights = rng.integers(1, copies + 1, len(keys)) + 0.0
    found = shared_weight(keys, weights)
    expected = (weights**2).sum() / weights.sum()
    assert abs(found - expected) < 4 * np.sqrt(2 / 2**row_keys.BITS) * expected
    times = weights.astype(int)
    assert shared_weight(np.repeat(keys, times), np.ones(times.sum())) == found


def test_fewer_rows_are_ranked_as_ever():
    data = taken(rows(), slice(MANY - 1))
    expected = np.random.default_rng(3).permutation(len(data)) % 10
    np.testing.assert_array_equal(folds(data), expected[number_rows(data)])
    assert np.ptp(np.bincount(folds(data))) <= 1
    # One more, and the sizes are left to chance.
    sizes = np.bincount(folds(taken(rows(), slice(MANY))))
    assert np.ptp(sizes) > 1
    assert stats.chisquare(sizes).pvalue > 1e-3


def test_many_folds_are_ranked():
    data, many = rows(), N // MANY_PER_FOLD
    assert np.ptp(np.bincount(folds(data, strategies.KFold(many)))) > 1
    assert np.ptp(np.bincount(folds(data, strategies.KFold(many + 1)))) == 1
    np.testing.assert_array_equal(np.bincount(folds(data, strategies.KFold(N))), 1)
    with pytest.raises(ValueError, match="n_folds must be at most the number of distinct rows"):
        folds(data, strategies.KFold(N + 1))


def test_the_order_of_many_rows_does_not_matter():
    data, order = rows(), np.random.default_rng(1).permutation(N)
    np.testing.assert_array_equal(folds(taken(data, order)), folds(data)[order])
    assert np.mean(folds(data, seed=4) == folds(data)) < 0.2


@pytest.mark.parametrize("duplicates", ["auto", "together"])
def test_a_plan_is_the_same_in_explicit_pairs(duplicates):
    data, strategy = rows(), strategies.KFold(4, "alpha", duplicates)
    data = Data(data.X, data.y, np.random.default_rng(2).uniform(0.5, 1.5, N))
    assert data.size >= MANY
    seen, quick = strategy.planned(data, np.random.default_rng(3))
    pairs = strategy.plan(data, np.random.default_rng(3))
    assert seen is data
    assert isinstance(quick, FoldPlan)
    for part in ("train", "test", "size", "transfer"):
        np.testing.assert_array_equal(getattr(pairs, part), getattr(quick.pairs(), part))


@AT_BOUND
@pytest.mark.parametrize("model", [MODEL, models.NormalInverseGammaLinear()], ids=["known", "not"])
def test_a_weight_counts_like_copies_among_many_rows(model):
    data = rows(60_000)
    copies = np.random.default_rng(5).choice([1, 2], len(data), p=[0.85, 0.15])
    assert MANY <= copies.sum()
    assert len(data) < MANY
    weighted = calibrate(model, data.X, data.y, "k-fold", weights=copies)
    repeated = calibrate(
        model, np.repeat(data.X, copies, axis=0), np.repeat(data.y, copies), "k-fold"
    )
    for part in ("beta", "risk", "gain"):
        assert getattr(weighted, part) == pytest.approx(getattr(repeated, part), rel=1e-9)
    assert weighted.standard_error == pytest.approx(repeated.standard_error, rel=1e-9)
    # Copies of a row share its fold.
    fold = folds(taken(data, np.repeat(np.arange(len(data)), copies)))
    single = folds(Data(data.X, data.y, copies + 0.0))
    np.testing.assert_array_equal(fold, np.repeat(single, copies))


def test_inputs_help_responses_that_repeat():
    data = rows()
    label = (data.y > 0) + 0.0
    labelled = Data(data.X, label, data.weights)
    fold = folds(labelled)
    # The first column is looked at, the second is not needed.
    np.testing.assert_array_equal(fold, folds(Data(data.X[:, :1], label, data.weights)))
    assert (
        stats.chi2_contingency(
            np.stack([np.bincount(fold[label == each], minlength=10) for each in (0, 1)])
        ).pvalue
        > 1e-3
    )
    # Columns that tell rows apart only together, as halves of the integers do.
    whole = np.arange(N)
    split = Data(np.column_stack([whole % 300, whole // 300]) + 0.0, label, data.weights)
    assert shared_weight(telling_keys(split, np.random.default_rng(3)), data.weights) < MOST_SHARED
    assert stats.chisquare(np.bincount(folds(split))).pvalue > 1e-3


def test_zero_has_one_sign():
    data = rows()
    plus, minus = (
        Data(np.column_stack([np.full(N, zero), data.y]), np.full(N, zero), data.weights)
        for zero in (0.0, -0.0)
    )
    np.testing.assert_array_equal(folds(plus), folds(minus))


@pytest.mark.parametrize("copies", [False, True])
def test_few_values_are_ranked(copies):
    """Binary rows are different observations; copies of real ones are not, and stay together."""
    data = rows(N // 2 if copies else N)
    if copies:
        data = taken(data, np.tile(np.arange(len(data)), 2))
    else:
        data = Data((data.X > 0) + 0.0, (data.y > 0) + 0.0, data.weights)
    assert telling_keys(data, np.random.default_rng(3)) is None
    joined, plan = strategies.KFold().planned(data, np.random.default_rng(3))
    assert isinstance(plan, FoldPlan if copies else Plan)
    assert len(joined) == (len(data) // 2 if copies else 8)
    assert np.all((plan.pairs().test > 0).sum(axis=0) == (1 if copies else 10))


def test_observations_that_are_kept_apart_are_ranked():
    data = taken(rows(N // 2), np.tile(np.arange(N // 2), 2))
    _, plan = strategies.KFold(duplicates="apart").planned(data, np.random.default_rng(3))
    assert np.ptp(plan.test.sum(axis=1)) <= 1
    assert np.mean((plan.test > 0).sum(axis=0) == 2) == pytest.approx(0.9, abs=0.02)


@AT_BOUND
def test_the_risk_is_the_same_however_folds_are_drawn(monkeypatch):
    data = rows()

    def risks(seeds):
        return [calibrate(MODEL, data.X, data.y, "k-fold", seed=seed).risk for seed in seeds]

    hashed = risks(range(30))
    monkeypatch.setattr("temperance.strategies.k_fold.MANY", np.inf)
    ranked = risks(range(30))
    assert stats.ttest_ind(hashed, ranked, equal_var=False).pvalue > 1e-3
    # Trained and tested by the same rows, the risk would be another.
    naive = calibrate(MODEL, data.X, data.y, "naive").risk
    assert stats.ttest_1samp(hashed, naive).pvalue < 1e-6


@pytest.mark.parametrize("count", [2**7, 2**7 + 1, 2**15, 2**15 + 1])
def test_labels_are_as_small_as_their_number_allows(count):
    """Every part is reached, and the fewest bits that do are taken."""
    keys = np.arange(count, dtype=np.uint64) * np.uint64(2**64 // count) + np.uint64(2**40)
    labels = parts_of(keys, count)
    np.testing.assert_array_equal(labels, np.arange(count))
    assert labels.dtype == {2**7: np.int8, 2**7 + 1: np.int16, 2**15: np.int16}.get(count, np.intp)


def test_keys_are_counted_in_chunks(monkeypatch):
    rng = np.random.default_rng(0)
    keys = rng.integers(2**64, size=1000, dtype=np.uint64)
    whole = [shared_weight(keys, each) for each in (np.ones(1000), np.full(1000, 2.0))]
    monkeypatch.setattr(row_keys, "COUNTED", 300)
    assert [shared_weight(keys, each) for each in (np.ones(1000), np.full(1000, 2.0))] == whole
