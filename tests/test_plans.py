"""Plans against their naive construction, and what holds for the calibrations they lead to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import model_selection
from temperance.models.linear.fast.blocks import MOST_PAIRS, blocks_of, partition_of
from temperance.models.linear.fast.pairs import PairMoments
from temperance.models.linear.rows import WhitenedRows

from temperance import calibrate, expected_risk, models, strategies
from temperance.checks import as_data
from temperance.data import Data, all_ones, total_weight
from temperance.duplicates import distinct_rows, joined_rows, number_distinct, takes_few_values
from temperance.plans import Folds, LeaveOneOut, Pairs, PrefixPlan

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
    plan = strategies.LeaveOneOut(transfer).plan(data, generator())
    assert isinstance(plan, LeaveOneOut)
    assert_pairs(plan, expected, transfer)
    carried = plan.pairs().likelihood_weights.sum(axis=1) / plan.pairs().train.sum(axis=1)
    np.testing.assert_allclose(plan.exponents, carried)


@TRANSFERS
@pytest.mark.parametrize("start", [1, 3, 5])
@pytest.mark.parametrize("orders", [[range(6)], [[3, 1, 5, 0, 2, 4], [5, 4, 3, 2, 1, 0]]], ids=len)
def test_prefixes_train_and_the_next_row_is_tested(orders, start, transfer):
    w = some_data(6).weights
    expected = [
        (only(w, order[:t]), only(w, [order[t]])) for order in orders for t in range(start, 6)
    ]
    plan = PrefixPlan(w, np.array(orders), start, transfer)
    assert_pairs(plan, expected, transfer)
    pairs = plan.pairs()
    np.testing.assert_allclose(
        np.concatenate([plan.exponents_of(np.array(order)) for order in orders]),
        pairs.likelihood_weights.sum(axis=1) / pairs.train.sum(axis=1),
    )


@TRANSFERS
def test_prefixes_that_grow_predict_all_rows_up_to_the_next(transfer):
    w, order = some_data(11).weights, np.random.default_rng(0).permutation(11)
    ends = [1, 2, 3, 4, 6, 9]  # each longer by a half, or by one
    expected = [
        (only(w, order[:end]), only(w, order[end:stop]))
        for end, stop in zip(ends, [*ends[1:], 11], strict=True)
    ]
    plan = PrefixPlan(w, order[None], transfer=transfer, growth=0.5)
    assert plan.ends.tolist() == ends
    assert_pairs(plan, expected, transfer)


def test_safe_bayes_keeps_the_order_unless_told_otherwise():
    data = some_data()
    plan = strategies.SafeBayes("alpha", start=2).plan(data, generator())
    np.testing.assert_array_equal(plan.orders, [np.arange(len(data))])
    assert (plan.start, plan.transfer) == (2, "alpha")
    shuffled = strategies.SafeBayes(permutations=4).plan(data, generator())
    assert shuffled.orders.shape == (4, len(data))
    np.testing.assert_array_equal(np.sort(shuffled.orders), np.tile(np.arange(len(data)), (4, 1)))
    assert len(np.unique(shuffled.orders, axis=0)) == 4


def test_permutations_average_the_curves_of_the_orders():
    data = some_data()
    model = models.GaussianLinear()
    plan = strategies.SafeBayes(permutations=3).plan(data, generator())
    together = model.risk_curve(data, plan)
    betas = np.array([0.0, 0.5, 2.0])
    tested = [data.weights[order[1:]].sum() for order in plan.orders]
    apart = [
        model.risk_curve(data, PrefixPlan(plan.weights, order[None]))(betas)
        for order in plan.orders
    ]
    np.testing.assert_allclose(together(betas), np.average(apart, axis=0, weights=tested))


@TRANSFERS
@pytest.mark.parametrize("n, folds", [(11, 2), (11, 4), (11, 11), (10, 5)])
def test_each_fold_is_tested_once(n, folds, transfer):
    data = some_data(n)
    plan = strategies.KFold(folds, transfer).plan(data, generator())
    tested = plan.test > 0
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
        fold = np.argmax(strategy.plan(doubled(data), generator()).test > 0, axis=0)
        np.testing.assert_array_equal(fold[:10], fold[10:])
        np.testing.assert_array_equal(np.bincount(fold), 4)
    # A row that differs in the last column only is another row.
    X = np.ones((6, 3))
    X[:, 2] = np.arange(6)
    plan = strategies.KFold(6, duplicates="together").plan(
        Data(X, np.ones(6), np.ones(6)), generator()
    )
    np.testing.assert_array_equal(np.sort(plan.test, axis=None), [0] * 30 + [1] * 6)


def test_equal_observations_fall_into_any_fold():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 2)).astype(float)
    coins = Data(X, rng.integers(0, 2, 60).astype(float), np.ones(60))
    plan = strategies.KFold(5, duplicates="apart").plan(coins, generator())
    same = strategies.KFold(5).plan(coins, generator())
    np.testing.assert_array_equal(plan.test, same.test)
    np.testing.assert_allclose(plan.test.sum(axis=1), 12)
    np.testing.assert_allclose(plan.train + plan.test, np.ones((5, 60)))
    # Whole observations of each distinct row are tested, and not all of them by one fold.
    number = number_distinct([coins.y, *X.T])
    tested = np.stack([np.bincount(number, weights=test) for test in plan.test])
    np.testing.assert_allclose(tested, tested.round(), atol=1e-12)
    assert np.all((tested > 0).sum(axis=0) > 1)
    together = strategies.KFold(5, duplicates="together").plan(coins, generator())
    assert np.all((together.test > 0).sum(axis=0) == 1)


@pytest.mark.parametrize("duplicates", ["auto", "together", "apart"])
def test_joined_rows_are_planned_like_the_rows(duplicates):
    rng = np.random.default_rng(1)
    data = Data(
        rng.integers(0, 3, (40, 1)).astype(float), rng.integers(0, 2, 40) + 0.0, np.ones(40)
    )
    strategy = strategies.KFold(5, duplicates=duplicates)
    rows, joined = strategy.planned(data, generator())
    plain = strategy.plan(data, generator())
    assert len(rows) == 6
    number = number_distinct([data.y, *data.X.T])
    joined = joined.pairs()
    for part, whole in ((joined.train, plain.train), (joined.test, plain.test)):
        summed = np.stack([np.bincount(number, weights=weights) for weights in whole])
        np.testing.assert_allclose(part, summed, atol=1e-12)


def test_weights_are_torn_into_at_most_a_hundred_pieces():
    data = Data(np.ones((2, 1)), np.array([0.0, 1.0]), np.array([2.5, 1e9]))
    plan = strategies.KFold(3, duplicates="apart").plan(data, generator())
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
        calibrate(SURE, data.X[rows], data.y[rows], "safe-bayes")
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
    weighted = calibrate(model, data.X, data.y, strategy, risk=risk, weights=copies)
    repeated = calibrate(
        model, np.repeat(data.X, copies, axis=0), np.repeat(data.y, copies), strategy, risk=risk
    )
    assert summary(weighted) == pytest.approx(summary(repeated), rel=1e-7)
    # Copies that are tested by themselves ask for more trust, up to the bound.
    if isinstance(strategy, strategies.KFold) and strategy.duplicates != "apart":
        assert not weighted.at_bound


def test_a_weight_does_not_count_like_copies_when_each_is_left_out_alone():
    data = some_data(9, 3, seed=4)
    weighted = calibrate(SURE, data.X, data.y, "leave-one-out", weights=[2] * 9)
    twice = doubled(data)
    repeated = calibrate(SURE, twice.X, twice.y, "leave-one-out")
    assert abs(weighted.risk - repeated.risk) > 1e-3


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
    calibration = calibrate(model, data.X, data.y, strategy, weights=data.weights)
    expected = expected_risk(
        model,
        (data.X, data.y, data.weights),
        (fresh.X, fresh.y, fresh.weights),
        calibration.alpha,
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
        strategies.CurveStrategy,
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
        strategy.plan(data, np.random.default_rng(seed)).pairs().train for seed in (1, 1, 2)
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


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_blocks_keep_the_second_moments_of_their_rows(data):
    pairs, profiles = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    n, columns = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    rows = WhitenedRows(rng.standard_normal((n, columns)), rng.standard_normal(n), np.ones(columns))
    profile = rng.choice([0.0, 0.5, 1.0, 3.0], size=(2 * pairs, profiles))
    profile[:, 0] = 1.0
    weights = profile[:, rng.integers(profiles, size=n)] * 10.0 ** rng.uniform(-3, 3, n)
    weights[:, 0] = 1.0
    plan = Pairs(weights[:pairs], weights[pairs:], 1.0)
    partition = partition_of(plan, columns + 1)
    if partition is None:
        assert profiles > max(2 * pairs, n // (columns + 1))
        return
    blocks = blocks_of(rows, partition)
    for shares, expected in ((partition.train, plan.train), (partition.test, plan.test)):
        wanted = [(rows.whole.T * w) @ rows.whole for w in expected]
        factors = blocks.factors(np.arange(partition.blocks))
        for grams in (blocks.grams, np.stack([each.T @ each for each in factors])):
            found = np.tensordot(shares, grams, axes=1)
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * weights.max())


@pytest.mark.parametrize("transfer", ["beta", "alpha"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("start", [0, 1])
def test_pairs_know_what_they_train_and_test(start, weighted, transfer):
    data = some_data(40)
    weights = data.weights if weighted else np.broadcast_to(1.0, 40)
    plan = Folds(weights, np.arange(40) % 3, 3, transfer, start)
    rows = WhitenedRows(data.X, data.y, np.ones(2))
    pairs = plan.pairs()
    for each in (plan, pairs):
        (sums,) = PairMoments(rows, each).sums(np.ones(1))
        np.testing.assert_allclose(sums.exposure, pairs.likelihood_weights.sum(axis=1))
        np.testing.assert_allclose(sums.tested, pairs.test.sum(axis=1))


def test_blocks_are_worth_it_or_not_made():
    folds = (np.arange(1000) % 10 == np.arange(10)[:, None]).astype(float)
    partition = partition_of(Pairs(1 - folds, folds, 1000.0), 3)
    assert [len(members) for members in partition.members] == [100] * 10
    different = np.random.default_rng(1).random((2, 1000))
    assert partition_of(Pairs(different, different, 1000.0), 3) is None
    many = np.ones((MOST_PAIRS + 1, 1000))
    assert partition_of(Pairs(many, many, 1000.0), 3) is None


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
    one, other = (
        strategies.KFold(4).plan(Data(X[rows], y[rows], weights[rows]), generator())
        for rows in (np.arange(20), order)
    )
    np.testing.assert_allclose(one.test[:, order], other.test, rtol=1e-12)


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
    monkeypatch.setattr("temperance.duplicates.MANY", many)
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
