"""Plans against their naive construction, and what holds for the calibrations they lead to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import table_of
from sklearn import model_selection

from temperance import calibrate, expected_risk, models, plans, strategies
from temperance.checks import as_data
from temperance.data import Data, all_ones, total_weight
from temperance.plans import (
    Folds,
    LeaveOneOut,
    Pairs,
    distinct_rows,
    hashed,
    joined_rows,
    number_distinct,
    takes_few_values,
)
from temperance.strategies.safe_bayes import prefix_lengths

# Where the minimum lies is not the question here.
pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")


def some_data(n=11, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return Data(X, X[:, 0] + rng.standard_normal(n), rng.uniform(0.5, 2.0, n))


# Too sure of its noise, with a wide prior: the best beta lies inside the bounds.
SURE = models.GaussianLinear(noise_variance=0.3, prior_cov=4.0)


def generator():
    return np.random.default_rng(5)


def only(weights, rows):
    """Weights on the rows named, zero elsewhere."""
    kept = np.zeros_like(weights)
    for row in rows:
        kept[row] = weights[row]
    return kept


def assert_pairs(plan, expected, transfer="beta"):
    """Compare a plan with a list of (train, test) and carry the likelihood by hand."""
    pairs = plan.pairs()
    assert pairs.size == plan.size
    np.testing.assert_allclose(pairs.train, [train for train, _ in expected])
    np.testing.assert_allclose(pairs.test, [test for _, test in expected])
    for carried, (train, _) in zip(pairs.likelihood_weights, expected, strict=True):
        factor = plan.size / sum(train) if transfer == "alpha" else 1.0
        np.testing.assert_allclose(carried, [factor * weight for weight in train])


TRANSFERS = pytest.mark.parametrize("transfer", ["beta", "alpha"])


@pytest.mark.parametrize("strategy", [strategies.Naive(), strategies.Bayes()], ids=str)
def test_naive_and_bayes_use_all_rows_twice(strategy):
    data = some_data()
    assert_pairs(strategy.plan(data, generator()), [(data.weights, data.weights)])


@TRANSFERS
@pytest.mark.parametrize("n", [2, 5, 8])
def test_sample_splitting_halves_the_rows(n, transfer):
    data = some_data(n)
    w = data.weights
    first, second = only(w, range(n // 2)), only(w, range(n // 2, n))
    one = strategies.SampleSplitting(transfer).plan(data, generator())
    both = strategies.SampleSplitting(transfer, both_directions=True).plan(data, generator())
    assert_pairs(one, [(first, second)], transfer)
    assert_pairs(both, [(first, second), (second, first)], transfer)


@TRANSFERS
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_split_is_two_folds_of_which_the_second_is_tested(shuffle, transfer):
    """Models need not find out which rows share their weights: the plan says it."""
    data, strategy = some_data(9), strategies.SampleSplitting(transfer, shuffle)
    rows, plan = strategy.planned(data, generator())
    explicit = strategy.plan(data, generator())
    assert rows is data
    assert isinstance(plan, Folds)
    assert_pairs(plan, list(zip(explicit.train, explicit.test, strict=True)), transfer)


def test_random_halves_are_halves_and_differ():
    data = some_data(9)
    plan = strategies.SampleSplitting(shuffle=True, both_directions=True, repeats=6).plan(
        data, generator()
    )
    trained, tested = plan.train > 0, plan.test > 0
    assert plan.train.shape == (12, 9)
    np.testing.assert_array_equal(trained[:6], tested[6:])
    np.testing.assert_array_equal(trained, ~tested)
    np.testing.assert_array_equal(trained[:6].sum(axis=1), 4)
    np.testing.assert_allclose(plan.train + plan.test, np.tile(data.weights, (12, 1)))
    assert len(np.unique(trained[:6], axis=0)) > 1


@TRANSFERS
def test_leave_one_out_leaves_each_row_out(transfer):
    data = some_data(5)
    w = data.weights
    expected = [(only(w, set(range(5)) - {i}), only(w, [i])) for i in range(5)]
    rows, plan = strategies.LeaveOneOut(transfer).planned(data, generator())
    assert isinstance(plan, LeaveOneOut) and rows is data
    assert_pairs(plan, expected, transfer)
    carried = plan.pairs().likelihood_weights.sum(axis=1) / plan.pairs().train.sum(axis=1)
    np.testing.assert_allclose(plan.exponents, carried)


@TRANSFERS
@pytest.mark.parametrize("start", [1, 3, 5])
@pytest.mark.parametrize("permutations", [0, 2])
def test_prefixes_train_and_the_next_row_is_tested(permutations, start, transfer):
    data = some_data(6)
    orders = [range(6)]
    if permutations:
        rng = generator()
        orders = [rng.permutation(6).tolist() for _ in range(permutations)]
    expected = [
        (only(data.weights, order[:t]), only(data.weights, [order[t]]))
        for order in orders
        for t in range(start, 6)
    ]
    strategy = strategies.SafeBayes(transfer, start, permutations)
    assert_pairs(strategy.plan(data, generator()), expected, transfer)


@TRANSFERS
def test_a_stride_tests_all_rows_up_to_the_next_prefix(transfer):
    data = some_data(11)
    ends = [3, 6, 9]
    expected = [
        (only(data.weights, range(end)), only(data.weights, range(end, stop)))
        for end, stop in zip(ends, [*ends[1:], 11], strict=True)
    ]
    strategy = strategies.SafeBayes(transfer, start=2, stride=3)
    assert_pairs(strategy.plan(data, generator()), expected, transfer)


@pytest.mark.parametrize("n", [200, 201, 5000])
def test_every_row_is_predicted_once_and_few_prefixes_are_fitted(n):
    ends = prefix_lengths(1, n)
    np.testing.assert_array_equal(ends[: min(n, 200) - 1], np.arange(1, min(n, 200)))
    steps = np.diff(np.append(ends, n))
    assert steps.min() >= 1 and len(ends) <= 500
    assert np.all(steps[199:] <= 1 + ends[199:] * 0.02)
    if n < 1000:
        tested = strategies.SafeBayes().plan(some_data(n), generator()).test
        np.testing.assert_array_equal((tested > 0).sum(axis=0), [0] + [1] * (n - 1))


def test_few_prefixes_make_the_choice_of_all():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 4))
    y = X[:, 0] + 4 * rng.standard_t(4, 1500)
    model = models.GaussianLinear(4.0, prior_cov=4.0)
    every, few = (
        calibrate(model, X, y, strategies.SafeBayes(stride=stride), risk="gibbs")
        for stride in (1, None)
    )
    assert not every.at_bound
    assert few.beta == pytest.approx(every.beta, rel=0.02)
    assert every.curve(few.beta) - every.risk < 1e-3 * every.gain_standard_error
    assert few.risk == pytest.approx(every.risk, abs=0.02 * every.standard_error)


def test_permutations_average_the_curves_of_the_orders():
    data = some_data()
    model = models.GaussianLinear()
    plan = strategies.SafeBayes(permutations=3).plan(data, generator())
    betas = np.array([0.0, 0.5, 2.0])
    orders = np.split(np.arange(30), 3)
    apart = [
        table_of(model, data, Pairs(plan.train[some], plan.test[some], plan.size))(betas)
        for some in orders
    ]
    tested = [plan.test[some].sum() for some in orders]
    together = table_of(model, data, plan)(betas)
    np.testing.assert_allclose(together, np.average(apart, axis=0, weights=tested))


@TRANSFERS
@pytest.mark.parametrize("n, folds", [(11, 2), (11, 4), (11, 11), (10, 5)])
def test_each_fold_is_tested_once(n, folds, transfer):
    data = some_data(n)
    _, plan = strategies.KFold(folds, transfer).planned(data, generator())
    tested = plan.pairs().test > 0
    np.testing.assert_array_equal(tested.sum(axis=0), 1)
    assert np.ptp(tested.sum(axis=1)) <= 1
    expected = [
        (only(data.weights, np.flatnonzero(~fold)), only(data.weights, np.flatnonzero(fold)))
        for fold in tested
    ]
    assert_pairs(plan, expected, transfer)


def doubled(data, copies=2):
    """Each row in ``copies`` places, far apart."""
    return Data(*(np.concatenate([part] * copies) for part in (data.X, data.y, data.weights)))


def test_copies_share_a_fold():
    data = some_data(10)
    for strategy in (strategies.KFold(5), strategies.KFold(5, duplicates="together")):
        rows, plan = strategy.planned(doubled(data), generator())
        ordered = distinct_rows(data)[0]
        np.testing.assert_array_equal(rows.X, ordered.X)
        np.testing.assert_array_equal(rows.weights, 2 * ordered.weights)
        np.testing.assert_array_equal(plan.counts, 2)
    # A row that differs in the last column only is another row.
    X = np.ones((6, 3))
    X[:, 2] = np.arange(6)
    _, plan = strategies.KFold(6, duplicates="together").planned(
        Data(X, np.ones(6), np.ones(6)), generator()
    )
    np.testing.assert_array_equal(np.sort(plan.pairs().test, axis=None), [0] * 30 + [1] * 6)


def test_equal_observations_fall_into_any_fold():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 2)).astype(float)
    coins = Data(X, rng.integers(0, 2, 60).astype(float), np.ones(60))
    rows, plan = strategies.KFold(5, duplicates="apart").planned(coins, generator())
    _, same = strategies.KFold(5).planned(coins, generator())
    np.testing.assert_array_equal(plan.test, same.test)
    np.testing.assert_allclose(plan.test.sum(axis=1), 12)
    np.testing.assert_allclose(plan.train + plan.test, np.tile(rows.weights, (5, 1)))
    # Whole observations of each distinct row are tested, and not all of them by one fold.
    np.testing.assert_allclose(plan.test, plan.test.round(), atol=1e-12)
    assert np.all((plan.test > 0).sum(axis=0) > 1)
    _, together = strategies.KFold(5, duplicates="together").planned(coins, generator())
    assert np.all((together.pairs().test > 0).sum(axis=0) == 1)


@pytest.mark.parametrize("duplicates", ["auto", "together", "apart"])
@pytest.mark.parametrize(
    "kind", [lambda how: strategies.KFold(5, duplicates=how), lambda how: left_out(how)]
)
def test_weights_are_planned_like_copies_in_any_order(kind, duplicates):
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 3, (9, 1)).astype(float), rng.integers(0, 9, 9) + 0.0
    weights = rng.integers(1, 6, 9).astype(float)
    data, _ = distinct_rows(Data(X, y, weights))
    order = rng.permutation(int(data.size))
    copies = Data(
        *(np.repeat(each, data.weights.astype(int), axis=0)[order] for each in (data.X, data.y)),
        np.ones(len(order)),
    )
    strategy = kind(duplicates)
    (rows, one), (others, other) = (strategy.planned(each, generator()) for each in (data, copies))
    np.testing.assert_array_equal(rows.X, others.X)
    np.testing.assert_array_equal(rows.weights, others.weights)
    for part in ("train", "test", "likelihood_weights"):
        np.testing.assert_allclose(*(getattr(each.pairs(), part) for each in (one, other)))


def left_out(duplicates):
    return strategies.LeaveOneOut(duplicates=duplicates)


@TRANSFERS
def test_a_piece_of_a_weight_is_left_out_alone(transfer):
    weights, pieces = np.array([1.0, 3.0, 2.5]), np.array([1, 3, 3])
    plan = LeaveOneOut(weights, transfer, pieces)
    deleted = weights / pieces
    expected = [(weights - deleted * (np.arange(3) == i), only(weights, [i])) for i in range(3)]
    assert_pairs(plan, expected, transfer)
    np.testing.assert_allclose(plan.exponents, 1 if transfer == "beta" else 6.5 / (6.5 - deleted))


def test_some_rows_may_be_tested_and_all_are_trained_on():
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    plan = LeaveOneOut(weights, places=np.array([3, 1]))
    assert_pairs(
        plan,
        [(only(weights, [0, 1, 2]), only(weights, [3]))]
        + [(only(weights, [0, 2, 3]), only(weights, [1]))],
    )


def test_rows_to_be_tested_are_chosen_by_what_they_hold():
    data = some_data(300)
    assert hashed(data, 300) is None
    order = np.random.default_rng(1).permutation(300)
    moved = Data(data.X[order], data.y[order], data.weights[order])
    for most in (1, 100, 299):
        found = hashed(data, most)
        assert len(np.unique(found)) == most and np.all(np.diff(found) > 0)
        np.testing.assert_array_equal(np.sort(order[hashed(moved, most)]), found)
    share = np.bincount(hashed(data, 100) // 30, minlength=10)  # whatever their place
    assert share.min() >= 3 and share.max() <= 19


def test_few_of_many_rows_are_tested_to_stack(monkeypatch):
    data = some_data(60)
    every = calibrate(SURE, data.X, data.y)
    monkeypatch.setattr(plans, "hashed", lambda rows: hashed(rows, 50))
    some = calibrate(SURE, data.X, data.y)
    assert len(every.losses) == 60 and len(some.losses) == 50
    losses = every.table.at(np.array([0.3, 1.0]))[:, some.table.rows]
    np.testing.assert_allclose(some.table.at(np.array([0.3, 1.0])), losses, rtol=1e-12)


def test_weights_are_torn_into_at_most_a_hundred_pieces():
    data = Data(np.ones((2, 1)), np.array([0.0, 1.0]), np.array([2.5, 1e9]))
    _, plan = strategies.KFold(3, duplicates="apart").planned(data, generator())
    pieces = plan.test / np.array([2.5 / 3, 1e7])
    np.testing.assert_allclose(pieces, pieces.round(), rtol=1e-12)
    np.testing.assert_allclose(plan.test.sum(axis=0), data.weights)


FEW_VALUES = {
    "binary inputs and labels": (
        lambda rng: (rng.integers(0, 2, (200, 3)), rng.integers(0, 2, 200), 1),
        True,
    ),
    "no inputs, counts": (lambda rng: (np.empty((50, 0)), rng.integers(0, 4, 50), 1), True),
    "real inputs and labels": (
        lambda rng: (rng.normal(size=(50, 2)), rng.integers(0, 2, 50), 1),
        False,
    ),
    "real inputs and labels, large weights": (
        lambda rng: (rng.normal(size=(50, 2)), rng.integers(0, 2, 50), 100),
        False,
    ),
    "binary inputs, real response, large weights": (
        lambda rng: (rng.integers(0, 2, (50, 2)), rng.normal(size=50), 100),
        False,
    ),
    "separable binary data": (
        lambda rng: ((X := rng.integers(0, 2, (50, 2))), X[:, 0], 1),
        False,
    ),
    "both labels everywhere, a few rows twice": (
        lambda rng: (
            np.r_[np.tile(np.arange(30), 2), np.arange(15)][:, None],
            np.r_[np.repeat([0, 1], 30), np.zeros(15)],
            1,
        ),
        False,
    ),
    "rare repeats": (
        lambda rng: (rng.integers(0, 40, (60, 1)), rng.integers(0, 2, 60), 1),
        False,
    ),
}


@pytest.mark.parametrize(("draw", "few"), FEW_VALUES.values(), ids=FEW_VALUES)
def test_few_values_are_told_from_copies(draw, few):
    X, y, weight = draw(np.random.default_rng(2))
    rows, _ = distinct_rows(Data(X + 0.0, y + 0.0, np.full(len(y), float(weight))))
    assert takes_few_values(rows) is few


ORDER_FREE = [
    strategies.KFold(4),
    strategies.KFold(4, duplicates="together"),
    strategies.KFold(4, duplicates="apart"),
    strategies.KFold(3, "alpha"),
    strategies.LeaveOneOut(),
    strategies.Naive(),
    strategies.Bayes(),
]


@pytest.mark.parametrize("strategy", ORDER_FREE, ids=str)
def test_the_order_of_the_rows_does_not_matter(strategy):
    data = some_data(13, 3)
    order = np.random.default_rng(1).permutation(13)
    one, other = (
        calibrate(SURE, d.X, d.y, strategy, weights=d.weights, seed=7, risk="predictive")
        for d in (data, Data(data.X[order], data.y[order], data.weights[order]))
    )
    assert summary(one) == pytest.approx(summary(other), rel=1e-7)


def test_the_order_of_the_rows_matters_to_safe_bayes():
    data = some_data(13, 3)
    one, other = (
        calibrate(SURE, data.X[rows], data.y[rows], "safe-bayes", risk="gibbs")
        for rows in (slice(None), slice(None, None, -1))
    )
    assert abs(one.risk - other.risk) > 1e-3


def summary(calibration):
    return [
        calibration.beta,
        calibration.alpha,
        calibration.risk,
        calibration.standard_error,
        calibration.gain,
        calibration.gain_standard_error,
    ]


@pytest.mark.parametrize(
    "strategy",
    [
        strategies.KFold(4),
        strategies.KFold(4, "alpha", duplicates="together"),
        strategies.KFold(4, duplicates="apart"),
        strategies.LeaveOneOut(),
        strategies.LeaveOneOut("alpha"),
        strategies.LeaveOneOut(duplicates="apart"),
        strategies.LeaveOneOut("alpha", "apart"),
        strategies.Stacking(),
        strategies.Stacking(strategies.KFold(4)),
        strategies.Naive(),
        strategies.Bayes(),
    ],
    ids=str,
)
@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize(
    "model", [SURE, models.NormalInverseGammaLinear()], ids=["known variance", "unknown variance"]
)
def test_a_weight_counts_like_as_many_copies(strategy, risk, model):
    data = some_data(9, 3, seed=4)
    copies = np.array([1, 3, 2, 1, 1, 4, 2, 1, 0])
    if isinstance(strategy, strategies.Stacking) and risk == "gibbs":
        return
    weighted = calibrate(model, data.X, data.y, strategy, risk=risk, weights=copies)
    repeated = calibrate(
        model, np.repeat(data.X, copies, axis=0), np.repeat(data.y, copies), strategy, risk=risk
    )
    assert summary(weighted) == pytest.approx(summary(repeated), rel=1e-7)
    # Copies that are tested by themselves ask for more trust, up to the bound.
    if isinstance(strategy, strategies.KFold) and strategy.duplicates != "apart":
        assert not weighted.at_bound


@pytest.mark.parametrize("size", [11.0, 11.3, 2.2])
def test_a_resample_is_as_large_as_the_data(size):
    data = some_data()
    data = Data(data.X, data.y, data.weights * size / data.weights.sum())
    plan = strategies.Bootstrap(50).plan(data, generator())
    assert plan.train.shape == (50, 11)
    np.testing.assert_allclose(plan.train.sum(axis=1), size)
    np.testing.assert_allclose(plan.test, np.tile(data.weights, (50, 1)))
    units = plan.train / (size / max(1, round(size)))
    np.testing.assert_allclose(units, np.round(units), atol=1e-12)


def test_resamples_draw_rows_in_proportion_to_their_weight():
    data = some_data()
    counts = strategies.Bootstrap(4000).plan(data, generator()).train
    share = data.weights / data.weights.sum()
    error = counts.std(axis=0) / np.sqrt(len(counts))
    assert np.all(np.abs(counts.mean(axis=0) - data.size * share) < 4 * error)
    assert np.any(np.abs(counts.mean(axis=0) - data.size / 11) > 4 * error)


def test_out_of_bag_rows_are_those_that_were_not_drawn():
    data = Data(*(part[:4] for part in (some_data().X, some_data().y, np.ones(11))))
    inside = strategies.Bootstrap(200).plan(data, generator())
    outside = strategies.Bootstrap(200, out_of_bag=True).plan(data, generator())
    # The same seed draws the same resamples; those without a row to test are left out.
    kept = (inside.train == 0).any(axis=1)
    assert not kept.all()
    np.testing.assert_array_equal(outside.train, inside.train[kept])
    np.testing.assert_array_equal(outside.test, (inside.train[kept] == 0) * data.weights)


SPLITTERS = {
    "k-fold": model_selection.KFold(3),
    "shuffled": model_selection.KFold(3, shuffle=True, random_state=1),
    "stratified": model_selection.StratifiedKFold(3),
    "groups": model_selection.GroupKFold(3),
    "random": model_selection.ShuffleSplit(4, test_size=0.3, random_state=2),
    "leave one out": model_selection.LeaveOneOut(),
    "predefined": model_selection.PredefinedSplit([-1, 0, 1, 0] * 3),
}
GROUPS = np.array(list("aabbccddeeff"))


@TRANSFERS
@pytest.mark.parametrize("splitter", SPLITTERS.values(), ids=SPLITTERS)
def test_a_splitter_says_who_trains_and_who_is_tested(splitter, transfer):
    data = some_data(12)
    data = Data(data.X, (np.arange(12) % 2).astype(float), data.weights)
    groups = GROUPS if isinstance(splitter, model_selection.GroupKFold) else None
    expected = [
        (only(data.weights, train), only(data.weights, test))
        for train, test in splitter.split(data.X, data.y, groups)
    ]
    plan = strategies.FromSplitter(splitter, transfer, groups).plan(data, generator())
    assert_pairs(plan, expected, transfer)


@TRANSFERS
def test_a_splitter_leads_to_the_same_choice_as_our_own(transfer):
    data = some_data(12)
    ours, theirs = (
        calibrate(SURE, data.X, data.y, strategy, weights=data.weights, risk="predictive")
        for strategy in (
            strategies.LeaveOneOut(transfer),
            strategies.FromSplitter(model_selection.LeaveOneOut(), transfer),
        )
    )
    assert summary(ours) == pytest.approx(summary(theirs), rel=1e-7)


def test_a_splitter_serves_a_model_without_inputs():
    strategy = strategies.FromSplitter(model_selection.KFold(3))
    assert np.isfinite(calibrate(models.GaussianMean(), None, some_data().y, strategy).risk)


def test_the_oracle_trains_on_the_data_and_tests_on_what_it_knows():
    data, fresh = some_data(6), some_data(8, seed=1)
    strategy = strategies.Oracle(fresh.X, fresh.y, fresh.weights)
    rows, plan = strategy.planned(data, generator())
    np.testing.assert_array_equal(rows.X, np.vstack([data.X, fresh.X]))
    np.testing.assert_array_equal(rows.y, np.concatenate([data.y, fresh.y]))
    assert plan.size == data.size
    assert_pairs(plan, [([*data.weights, *[0] * 8], [*[0] * 6, *fresh.weights])])
    model = models.GaussianLinear()
    calibration = calibrate(model, data.X, data.y, strategy, weights=data.weights, risk="gibbs")
    expected = expected_risk(
        model,
        (data.X, data.y, data.weights),
        (fresh.X, fresh.y, fresh.weights),
        calibration.alpha,
        risk="gibbs",
    )
    assert calibration.risk == pytest.approx(expected, rel=1e-10)
    assert len(calibration.data) == 6


def test_names_give_strategies_with_their_defaults():
    names = strategies.NAMES | strategies.FOR_SOME_MODELS | strategies.RATES
    for name, strategy in names.items():
        assert strategies.strategy_named(name) == strategy()
    # These need an argument, or a plan.
    nameless = {
        strategies.FromSplitter,
        strategies.Oracle,
        strategies.PlanStrategy,
        strategies.Coarsened,
        strategies.RateStrategy,
    }
    public = [getattr(strategies, name) for name in strategies.__all__]
    named = {kind for kind in public if isinstance(kind, type)} - nameless
    assert named == set(names.values())


RANDOM = [
    strategies.KFold(3),
    strategies.Bootstrap(5),
    strategies.SafeBayes(permutations=2),
    strategies.SampleSplitting(shuffle=True),
]


@pytest.mark.parametrize("strategy", RANDOM, ids=str)
def test_the_same_seed_gives_the_same_plan(strategy):
    data = some_data()
    first, again, other = (
        strategy.planned(data, np.random.default_rng(seed))[1].pairs().train for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_tested_rows_are_listed_and_padded():
    test = np.array([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 3.0, 0.0], [1.0, 1.0, 0.0, 1.0]])
    rows, weights = Pairs(np.ones((3, 4)), test, 4.0).tested_rows()
    assert rows.shape == weights.shape == (3, 3)
    for listed, weight, row in zip(rows, weights, test, strict=True):
        again = np.zeros(4)
        np.add.at(again, listed, weight)
        np.testing.assert_array_equal(again, row)


columns = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.tuples(*[st.sampled_from([-1.5, -0.0, 0.0, 2.0])] * width), min_size=1, max_size=12
    )
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(columns)
def test_distinct_tuples_are_numbered_in_order(tuples):
    numbered = sorted(set(tuples))
    found = number_distinct(np.array(tuples).T)
    assert found.tolist() == [numbered.index(each) for each in tuples]


def test_columns_after_the_telling_one_are_not_looked_at():
    def columns():
        yield np.array([1.0, 2.0, 1.0])
        yield np.array([5.0, 4.0, 3.0])
        raise AssertionError("looked at")

    assert number_distinct(columns()).tolist() == [1, 2, 0]
    with pytest.raises(ValueError, match="^columns must hold at least one column, got 0$"):
        number_distinct([])


def test_equal_rows_of_different_weight_may_change_places():
    X, y = np.repeat(np.arange(4.0), 5)[:, None], np.zeros(20)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 20)
    order = np.random.default_rng(1).permutation(20)
    (rows, one), (others, other) = (
        strategies.KFold(4).planned(Data(X[rows], y[rows], weights[rows]), generator())
        for rows in (np.arange(20), order)
    )
    np.testing.assert_allclose(rows.weights, others.weights, rtol=1e-12)
    np.testing.assert_allclose(one.pairs().test, other.pairs().test, rtol=1e-12)


class Splits:
    """A splitter with one split, whatever the data."""

    def __init__(self, train, test):
        self.rows = train, test

    def split(self, X, y, groups):
        return [self.rows]


def test_a_splitter_may_repeat_rows():
    data = some_data(4)
    plan = strategies.FromSplitter(Splits([0, 0, 1], [2, 3])).plan(data, generator())
    np.testing.assert_allclose(plan.train[0], data.weights * [2, 1, 0, 0])


@pytest.mark.parametrize("row", [-1, 4])
def test_a_splitter_must_name_rows_that_exist(row):
    with pytest.raises(ValueError, match=f"train rows from 0 to 3, .* got row {row} in split 0"):
        strategies.FromSplitter(Splits([0, row], [2])).plan(some_data(4), generator())


@pytest.mark.parametrize("many", [1, 100], ids=["many rows", "few rows"])
def test_rows_are_joined_only_where_they_can_be_the_same(many, monkeypatch):
    monkeypatch.setattr("temperance.plans.MANY_TO_SORT", many)
    data = some_data(12)
    ordered = distinct_rows(data)[0]
    if many == 1:
        assert joined_rows(data) is data
    else:
        np.testing.assert_array_equal(joined_rows(data).y, ordered.y)
    joined = joined_rows(doubled(data))
    np.testing.assert_array_equal(joined.X, ordered.X)
    np.testing.assert_array_equal(joined.y, ordered.y)
    np.testing.assert_allclose(joined.weights, 2 * ordered.weights)
    # Equal responses at other inputs are other rows; a zero has no sign.
    other = Data(data.X, np.repeat([-0.0, 0.0], 6), data.weights)
    assert len(joined_rows(other)) == 12
    assert len(joined_rows(Data(data.X * 0.0, other.y, data.weights))) == 1


def test_weights_that_nobody_gave_are_one_number():
    """They take no memory, cannot be written to, and are known to be 1 without a look at each."""
    weights = as_data(np.zeros((5, 1)), np.zeros(5)).weights
    np.testing.assert_array_equal(weights, np.ones(5))
    assert weights.strides == (0,) and not weights.flags.writeable
    assert all_ones(weights) and all_ones(np.ones(5))
    assert not all_ones(np.broadcast_to(2.0, 5))
    assert not all_ones(np.array([1.0, 1.0, 0.5]))
    assert total_weight(weights) == total_weight(np.ones(5)) == 5
    assert total_weight(np.broadcast_to(2.0, 5)) == 10
    assert total_weight(np.array([1.0, 1.0, 0.5])) == 2.5


@pytest.mark.parametrize("given", [None, np.array([1.0, 2.0, 0.5, 1.0, 3.0])], ids=str)
def test_folds_know_their_rows_and_weights(given):
    weights = np.broadcast_to(1.0, 5) if given is None else given
    plan = Folds(weights, np.array([0, 2, 0, 1, 2], dtype=np.int8), 4, start=1)
    np.testing.assert_array_equal(plan.counts, [2, 1, 2, 0])
    expected = [weights[[3]].sum(), weights[[1, 4]].sum(), 0.0]
    np.testing.assert_array_equal(plan.fold_weights, expected)
