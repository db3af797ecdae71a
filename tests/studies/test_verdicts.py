"""Verdicts: rules that turn numbers into words, claims in worlds with a known answer, the page."""

import math
import re
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest

import temperance_studies.thesis.settings
from temperance import models
from temperance.strategies import Bootstrap, KFold, LeaveOneOut, SafeBayes
from temperance_studies.study import compare as real_compare
from temperance_studies.study import overall
from temperance_studies.thesis.constant import without_constant
from temperance_studies.thesis.verdicts import (
    CLAIMS,
    Check,
    Claim,
    Estimate,
    Evidence,
    Run,
    evidence,
    logistic,
    page,
    planned,
)
from temperance_studies.thesis.verdicts import convergence as steps
from temperance_studies.thesis.verdicts.claim import SHOWN, cell, counted, word
from temperance_studies.thesis.verdicts.default import recommended
from temperance_studies.thesis.verdicts.estimates import (
    of_mean,
    of_median,
    of_ratio,
    of_separate_ratio,
)
from temperance_studies.thesis.verdicts.markdown import table
from temperance_studies.thesis.verdicts.strategies import DEFAULT, THESIS, TRANSFERS, compared
from temperance_studies.thesis.verdicts.summary import (
    Overall,
    geometric_mean,
    in_errors,
    inside,
    over,
    spent_rows,
)
from temperance_studies.thesis.verdicts.variational import BETAS, KEYS, Variational

STATED, CODED = "as-stated", "as-coded"
BY_KEY = {claim.key: claim for claim in CLAIMS}
REPEATS = 6


# A world whose answers are known


class World:
    """A study that is made up: mean excess, beta and seconds by setting and strategy.

    ``best_risk`` is without the constant of the likelihood, as in the thesis.
    """

    def __init__(self, coded=None, best_beta=1.0, best_risk=1.0, **means):
        self.coded, self.best_beta, self.best_risk = coded, best_beta, best_risk
        self.means = {"excess": {}, "beta": {}, "seconds": {}} | means

    def compare(self, settings, strategies, repeats, seed):
        ((key, setting),) = settings.items()
        world = self.coded if self.coded and setting.version == CODED else self
        rng = np.random.default_rng([seed, len(key)])
        own_best = world.best_risk - without_constant(setting, 0.0)
        best_risk = np.tile(own_best + rng.random(repeats), len(strategies))
        # Noise that two strategies do not share is small against the differences.
        own = 1e-3 * rng.random(best_risk.shape)

        def mean(column, usual):
            chosen = [world.means[column].get(name, usual) for name in strategies]
            return np.repeat(chosen, repeats)

        excess = mean("excess", 0.5) + own
        columns = {
            "setting": key,
            "repetition": np.tile(np.arange(repeats), len(strategies)),
            "strategy": np.repeat(list(strategies), repeats),
            "beta": mean("beta", 1.0) + own,
            "risk": best_risk + excess,
            "excess": excess,
            "best_beta": world.best_beta + own,
            "best_risk": best_risk,
            "seconds": mean("seconds", 0.01) * (1 + own),
        }
        # The order of rows must not matter.
        return pd.DataFrame(columns).iloc[::-1]

    def evidence(self):
        return Evidence(self.compare, REPEATS, 0)

    def decide(self, key):
        return BY_KEY[key].decide(self.evidence()).word


LOW, HIGH = 0.1, 0.9
SPLIT, SAFE = "sample splitting", "SafeBayes"


# Rules


@pytest.mark.parametrize(
    ("mean", "error", "low", "high", "mark"),
    [
        (-1.0, 0.4, -math.inf, 0.0, "✓"),
        (-1.0, 0.6, -math.inf, 0.0, "?"),
        (1.0, 0.6, -math.inf, 0.0, "?"),
        (1.0, 0.4, -math.inf, 0.0, "✗"),
        (1.0, 0.4, 0.0, math.inf, "✓"),
        (1.7, 0.1, 1.4, 2.0, "✓"),
        (1.7, 0.2, 1.4, 2.0, "?"),
        (2.3, 0.1, 1.4, 2.0, "✗"),
        (1.0, 0.1, 1.4, 2.0, "✗"),
        (0.0, 0.0, -math.inf, 0.0, "✗"),
        (1.0, math.inf, 0.0, math.inf, "?"),
        (math.inf, 0.0, 0.5, 2.0, "✗"),
        (math.nan, math.nan, 0.5, 2.0, "?"),
    ],
)
def test_a_check_supports_contradicts_or_is_open_by_two_errors(mean, error, low, high, mark):
    assert Check(STATED, "here", Estimate(mean, error), low, high).mark == mark


@pytest.mark.parametrize(
    ("mean", "error", "mark"),
    [(1.7, 0.1, "✓"), (1.5, 0.2, "✓"), (1.7, 0.4, "?"), (2.1, 0.2, "?"), (2.3, 0.1, "✗")],
)
def test_a_check_about_a_value_needs_the_estimate_in_range_and_some_precision(mean, error, mark):
    assert Check(STATED, "here", Estimate(mean, error), 1.4, 2.0, about=True).mark == mark


def checks(marks, version=STATED):
    mean = {"✓": -1.0, "✗": 1.0, "?": 0.0}
    return [Check(version, f"s{i}", Estimate(mean[m], 0.1), high=0.0) for i, m in enumerate(marks)]


@pytest.mark.parametrize(
    ("marks", "expected"),
    [("✓✓", "holds"), ("✗✗", "fails"), ("✗?", "fails"), ("??", "open"), ("✓?", "depends"),
     ("✓✗", "depends")],
)  # fmt: skip
def test_the_word_follows_from_the_checks(marks, expected):
    assert word(checks(marks)) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("✓✓", "✓", "holds"),
        ("✓✓", "✗✗", "fails"),
        ("✗?", "✓", "fails"),
        ("✓✓", "✓✗", "depends"),
        ("✓✓", "??", "depends"),
        ("✓✗", "✗✗", "fails"),
        ("✗✗", "✗", "fails"),
        ("?", "?", "open"),
    ],
)
def test_a_conjunction_needs_all_its_parts(first, second, expected):
    joined = [
        *(replace(check, part="one") for check in checks(first)),
        *(replace(check, part="other") for check in checks(second)),
    ]
    assert word(joined) == word(joined[::-1]) == expected
    claim = Claim("key", "here", "both", "tested", lambda evidence: joined)
    decision = claim.decide(World().evidence())
    assert decision.word == expected
    words = f"one: {word(checks(first))}, other: {word(checks(second))}"
    assert decision.support == f"{counted(joined)}; {words}"


@pytest.mark.parametrize(
    ("key", "excess", "expected"),
    [
        # One part holds, the other fails: the bootstrap is worse than both and than Bayes.
        ("middle-bootstrap", {"bootstrap": 0.7, SPLIT: 0.1, SAFE: 0.1}, "fails"),
        # The part about both holds for one of the two.
        ("middle-bootstrap", {"bootstrap": 0.4, SPLIT: 0.1, SAFE: 0.45}, "depends"),
        ("uniform-close", {SPLIT: 0.05, SAFE: 0.05}, "holds"),
        # Better than Bayes, but far from the best.
        ("uniform-close", {SPLIT: 0.4, SAFE: 0.4}, "fails"),
        ("uniform-close", {SPLIT: 0.05, SAFE: 0.4}, "depends"),
    ],
)
def test_conjunctions_among_the_claims(key, excess, expected):
    assert World(excess=excess).decide(key) == expected


def test_close_for_one_posterior_and_not_for_the_other(monkeypatch):
    monkeypatch.setattr(logistic, "least_risk", lambda setting: 2.0)
    claim = BY_KEY["backprop-near-least"]

    def decided(jaakkola, mean_field):
        excess = {"logistic-jaakkola": jaakkola, "logistic-mean-field": mean_field}

        def compare(settings, strategies, repeats, seed):
            (key,) = settings
            world = World(best_risk=1.5, excess={SPLIT: excess.get(key, 0.5)})
            return world.compare(settings, strategies, repeats, seed)

        return claim.decide(Evidence(compare, REPEATS, 0))

    assert decided(jaakkola=3.0, mean_field=0.0).word == "holds"
    failed = decided(jaakkola=3.0, mean_field=3.0)
    assert failed.word == "fails"
    assert failed.support.endswith("close for mean-field: fails, not for Jaakkola: holds")


def test_no_checks_are_no_verdict():
    with pytest.raises(ValueError, match="at least one check"):
        word([])


def test_cells_show_few_checks_and_sum_up_many():
    assert cell(checks("✓?")) == "s0 -1.00 ± 0.10 ✓; s1 0.00 ± 0.10 ?"
    many = cell(checks("✓" + "✗" * SHOWN))
    assert many == f"1 ✓ {SHOWN} ✗; -1 to 1, median 1; supported: s0"
    assert cell(checks("✗" + "✓" * (SHOWN + 1))).endswith("supported in all but s0")
    assert cell(checks("✓" * 7)) == "7 ✓; -1 to -1, median -1"
    assert counted(checks("✓✗?✗")) == "1 ✓ 2 ✗ 1 ?"
    assert cell([]) == "not measured"


# Numbers


@pytest.mark.parametrize(
    ("estimate", "shown"),
    [
        (Estimate(0.12345, 0.0121), "0.123 ± 0.012"),
        (Estimate(14.32, 1.24), "14.3 ± 1.2"),
        (Estimate(1201.4, 161.0), "1201 ± 161"),
        (Estimate(3.0, 0.0), "3 ± 0"),
        (Estimate(0.5, math.inf), "0.5 ± ?"),
        (Estimate(math.inf, 0.0), "∞"),
        (Estimate(-math.inf, 0.0), "-∞"),
        (Estimate(math.nan, 0.0), "?"),
        (Estimate(1e-9, 1e-9), "0.000000 ± 0.000000"),
    ],
)
def test_numbers_are_shown_with_their_errors(estimate, shown):
    assert str(estimate) == shown


def test_estimates_are_what_they_say():
    rng = np.random.default_rng(0)
    a, b = 1 + rng.random((2, 50))
    assert of_mean(a) == pytest.approx((a.mean(), a.std(ddof=1) / np.sqrt(50)))
    assert of_median(a).mean == np.median(a)
    ratio = of_ratio(a, b)
    residual = a - ratio.mean * b
    assert ratio == pytest.approx(
        (a.mean() / b.mean(), residual.std(ddof=1) / np.sqrt(50) / b.mean())
    )
    # Paired noise cancels, separate noise does not.
    assert of_ratio(a, 2 * a).error == pytest.approx(0)
    assert of_separate_ratio(a, 2 * a).error > 0
    assert of_mean(a).minus(of_mean(b)).error > max(of_mean(a).error, of_mean(b).error)


def test_errors_cover_the_truth_about_as_often_as_they_should():
    rng = np.random.default_rng(1)
    samples = 2 + rng.standard_normal((400, 30))
    for estimate in (of_mean, of_median):
        covered = [abs(e.mean - 2) < 2 * e.error for e in map(estimate, samples)]
        assert 0.88 < np.mean(covered) < 0.99
    pairs = zip(samples, 3 + rng.standard_normal((400, 30)), strict=True)
    covered = [abs(e.mean - 2 / 3) < 2 * e.error for e in (of_ratio(a, b) for a, b in pairs)]
    assert 0.88 < np.mean(covered) < 0.99


def test_one_repetition_has_no_error():
    assert math.isinf(of_mean([1.0]).error) and math.isinf(of_median([1.0]).error)


def test_ratios_to_nothing():
    zero, one = np.zeros(3), np.ones(3)
    assert of_ratio(zero, zero) == of_separate_ratio(zero, zero) == (1.0, 0.0)
    assert of_ratio(one, zero) == of_separate_ratio(one, zero) == (math.inf, 0.0)


# Claims: one of each kind of rule, in worlds where it holds, fails and depends


@pytest.mark.parametrize(
    ("key", "holds", "fails"),
    [
        ("split-beats-bayes", {"excess": {SPLIT: LOW}}, {"excess": {SPLIT: HIGH}}),
        ("safe-beats-bayes", {"excess": {SAFE: LOW}}, {"excess": {SAFE: HIGH}}),
        ("best", {"excess": {SPLIT: LOW, SAFE: LOW}}, {"excess": {"bootstrap": LOW}}),
        ("similar", {"excess": {SPLIT: 0.4, SAFE: 0.5}}, {"excess": {SPLIT: 0.1, SAFE: 0.5}}),
        ("split-is-faster", {"seconds": {SPLIT: 1e-3}}, {"seconds": {SPLIT: 1.0}}),
        ("split-is-safe", {"excess": {SPLIT: LOW}}, {"excess": {SPLIT: 1.5}}),
        ("naive-at-bound", {"beta": {"naive": 3.0}}, {"beta": {"naive": 2.9}}),
        ("naive-is-worst", {"excess": {"naive": HIGH}}, {"excess": {"naive": LOW}}),
        ("simple-similar", {"excess": dict.fromkeys(THESIS, 0.01)}, {}),
        ("simple-choices", {"beta": dict.fromkeys(THESIS, 2.9)}, {}),
        ("simple-bayes", {"excess": {"Bayes": 0.01}}, {"excess": {"Bayes": 0.5}}),
        ("bayes-near-best", {"best_beta": 1.1}, {"best_beta": 2.5}),
        ("middle-close", {"excess": {SPLIT: 0.05, SAFE: 0.05}}, {}),
        (
            "middle-bootstrap",
            {"excess": {"bootstrap": 0.4, SPLIT: 0.1, SAFE: 0.1}},
            {"excess": {"bootstrap": 0.7, SPLIT: 0.9, SAFE: 0.9}},
        ),
        ("middle-least", {"best_risk": 6.0}, {"best_risk": 0.0}),
        ("easy-safe-bayes", {"best_beta": 3.0}, {"best_beta": 0.5}),
        ("noisy-many-choices", {"best_beta": 1.0}, {"best_beta": 3.0}),
        ("noisy-few-best", {"best_beta": 0.1}, {"best_beta": 2.0}),
        ("noisy-few-choices", {"beta": {SPLIT: 0.1, SAFE: 0.1}}, {}),
        ("noisy-few-bootstrap", {}, {"excess": {"bootstrap": 0.1}}),
        ("accurate-few-split", {"excess": {SPLIT: HIGH}}, {"excess": {SPLIT: LOW}}),
        ("mean-no-winner", {}, {"excess": dict.fromkeys(THESIS[1:], LOW)}),
        ("polynomial-choice", {"beta": {SPLIT: 0.1}}, {}),
        ("polynomial-better", {"excess": {SPLIT: LOW}}, {"excess": {SPLIT: HIGH}}),
        ("unknown-gaussian", {"excess": {"Bayes": HIGH}}, {"excess": {"Bayes": LOW}}),
        ("unknown-mixture", {"excess": {"Bayes": HIGH}}, {"excess": {"Bayes": LOW}}),
        ("mixture-not-worse", {}, None),
        ("uniform-naive", {"excess": {"naive": HIGH}}, {"excess": {"naive": LOW}}),
        ("logistic-best-beta", {"best_beta": 1.7}, {"best_beta": 2.5}),
        (
            "backprop-strategies",
            {"excess": {SPLIT: LOW, SAFE: LOW}},
            {"excess": {"Bayes": LOW, "naive": LOW, "bootstrap": LOW}},
        ),
        ("bootstrap-not-worth", {"excess": {"bootstrap": HIGH}}, {"excess": {"bootstrap": LOW}}),
        ("bootstrap-slower", {"seconds": {"bootstrap": 1.0}}, {"seconds": {"bootstrap": 1e-3}}),
        ("bayes-fastest", {"seconds": {"Bayes": 1e-3}}, {"seconds": {"Bayes": 1.0}}),
        (
            "beta-for-parts",
            {"excess": {TRANSFERS[name][1]: LOW for name in TRANSFERS}},
            {"excess": {TRANSFERS[name][0]: LOW for name in TRANSFERS}},
        ),
        (
            "beta-for-folds",
            {"excess": {TRANSFERS[name][1]: LOW for name in TRANSFERS}},
            {"excess": {TRANSFERS[name][0]: LOW for name in TRANSFERS}},
        ),
        ("default-beats-bayes", {"excess": {DEFAULT: LOW}}, {"excess": {DEFAULT: HIGH}}),
        ("default-beats-thesis", {"excess": {DEFAULT: LOW}}, {"excess": {DEFAULT: HIGH}}),
    ],
)  # fmt: skip
def test_claims_in_worlds_where_the_answer_is_known(key, holds, fails):
    assert World(**holds).decide(key) == "holds"
    if fails is not None:
        assert World(**fails).decide(key) == "fails"
        both = World(**holds, coded=World(**fails))
        # Uniform noise has one version only.
        assert both.decide(key) == ("holds" if key == "uniform-naive" else "depends")


def test_larger_noise_and_larger_dimension_are_judged_apart():
    def compare(settings, strategies, repeats, seed):
        ((_, setting),) = settings.items()
        world = World(excess={SPLIT: LOW, SAFE: LOW} if setting.d > 40 else {"Bayes": LOW})
        return world.compare(settings, strategies, repeats, seed)

    decision = BY_KEY["unknown-gaussian"].decide(Evidence(compare, REPEATS, 0))
    assert decision.word == "fails"
    assert decision.support == "8 ✓ 8 ✗; larger noise: fails, larger dimension: holds"


# These need fits, but no comparisons.
SLOW = {"five-em-steps", "two-hundred-sgd-steps", "backprop-slower", "prior-mean"}


def test_all_comparisons_are_known_before_they_are_made():
    asked, world = [], World()

    def compare(settings, strategies, repeats, seed):
        asked.extend((name, setting, *strategies) for name, setting in settings.items())
        return world.compare(settings, strategies, repeats, seed)

    measured = Evidence(compare, REPEATS, 0)
    measured.__dict__["variational"] = THESIS_IS_RIGHT
    declared = {(c.name, c.setting, *c.strategies) for c in planned(0)}
    for claim in CLAIMS:
        if claim.key not in SLOW:
            claim.decide(measured)
    assert set(asked) == declared and len(asked) == len(declared) == 37


def test_a_single_exception_contradicts_always():
    world = World(beta={"naive": 3.0})

    def once_below(*arguments, **options):
        table = world.compare(*arguments, **options)
        table.loc[(table.repetition == 2) & (table.strategy == "naive"), "beta"] = 1.6
        return table

    decision = BY_KEY["naive-at-bound"].decide(Evidence(once_below, REPEATS, 0))
    assert decision.word == "fails" and "✓" not in decision.support


def made_up(generalisation, empirical, best, best_risk, slope_error, zero_risk):
    """Made-up variational posteriors; each argument is (Jaakkola, mean-field)."""
    rng = np.random.default_rng(0)
    shared, n = 1e-3 * rng.random(REPEATS), REPEATS

    def arrays(values, columns=None):
        shape = (n, columns) if columns else (n,)
        noise = shared[:, None] if columns else shared
        return {key: np.full(shape, v) + noise for key, v in zip(KEYS, values, strict=True)}

    found = Variational(
        arrays(generalisation, len(BETAS)),
        arrays(empirical, len(BETAS)),
        arrays(best),
        arrays(best_risk),
        arrays(slope_error),
        arrays(best),
        arrays(zero_risk),
    )
    return {STATED: found, CODED: found}


THESIS_IS_RIGHT = made_up((0.9, 0.8), (0.3, 0.4), (1.7, 1.7), (0.8, 0.6), (0.5, 0.1), (1.0, 0.6))
THESIS_IS_WRONG = made_up((0.8, 0.9), (0.4, 0.3), (1.0, 2.5), (0.6, 0.8), (0.1, 0.5), (0.6, 1.0))
VARIATIONAL = (
    "mean-field-generalises", "jaakkola-fits", "mean-field-distinct", "logistic-same-beta",
    "covariance-slope", "covariance-choice",
)  # fmt: skip


@pytest.mark.parametrize("key", VARIATIONAL)
def test_claims_on_variational_posteriors(key):
    def decided(stated, coded):
        measured = World().evidence()
        measured.__dict__["variational"] = {STATED: stated[STATED], CODED: coded[CODED]}
        return BY_KEY[key].decide(measured).word

    assert decided(THESIS_IS_RIGHT, THESIS_IS_RIGHT) == "holds"
    assert decided(THESIS_IS_WRONG, THESIS_IS_WRONG) == "fails"
    assert decided(THESIS_IS_RIGHT, THESIS_IS_WRONG) == "depends"


# The steps of EM and of Bayes by Backprop


def test_em_converges_to_the_library():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((20, 3))
    y = (rng.random(20) < 0.5).astype(float)
    converged = models.JaakkolaLogistic().posterior(Z, y, 20.0).mean
    start = np.abs(rng.standard_normal(20))
    np.testing.assert_allclose(steps.em(Z, y, 1.0, start, 200), converged, atol=1e-8)
    best = models.MeanFieldLogistic().posterior(Z, y, 20.0)
    least = steps.negative_elbo(Z, y, 1.0, best.mean, best.std)
    assert steps.negative_elbo(Z, y, 1.0, best.mean + 0.1, best.std) > least
    assert steps.negative_elbo(Z, y, 1.0, best.mean, 1.1 * best.std) > least


# Summaries


def test_a_geometric_mean_has_a_floor_and_a_ceiling():
    assert geometric_mean([Estimate(1e-9, 1e-9), Estimate(1.0, 0.1)]) == pytest.approx(
        (0.1, 0.1 * 0.1 / 2)
    )
    assert geometric_mean([Estimate(math.inf, 0.0)]).mean == pytest.approx(100.0)


def test_page_and_study_sum_up_by_the_same_rule():
    world = World(excess={SPLIT: 0.0, SAFE: 1e-4, "Bayes": 0.0})
    version, keys = STATED, ["mean-40-4", "polynomial"]

    def without_noise(*arguments, **options):
        table = world.compare(*arguments, **options)
        exact = table["strategy"].isin([SPLIT, "Bayes"])
        return table.assign(excess=table["excess"].where(~exact, 0.0))

    measured = Evidence(without_noise, REPEATS, 0)
    page_rows = {row.name: row for row in over(measured, [(version, key) for key in keys])}
    part = measured.table[
        (measured.table["version"] == version) & measured.table["setting"].isin(keys)
    ]
    lines = overall(part, "Bayes").set_index("strategy")
    for name, expected in ((SPLIT, 1.0), (SAFE, 100.0), ("naive", 100.0)):
        assert page_rows[name].ratio.mean == pytest.approx(expected)
        assert lines.loc[name, "ratio"] == pytest.approx(expected)


def test_differences_in_errors():
    assert in_errors(Estimate(-0.3, 0.1)) == "-3.0"
    assert in_errors(Estimate(0.0, 0.0)) == "0" and in_errors(Estimate(1.0, 0.0)) == "?"


def test_the_summary_counts_wins_and_losses():
    measured = World(excess={SPLIT: LOW, SAFE: HIGH}).evidence()
    rows = {row.name: row for row in over(measured, measured.present())}
    assert (rows[SPLIT].wins, rows[SPLIT].losses) == (23, 0)
    assert (rows[SAFE].wins, rows[SAFE].losses) == (0, 23)
    assert rows[SPLIT].ratio.mean == pytest.approx(0.2, rel=0.02)
    assert rows["Bayes"].ratio == (1.0, 0.0)
    assert len(inside(measured)) == 23
    assert inside(World(best_beta=3.0).evidence()) == []


def test_the_recommended_strategy_follows_its_rule():
    one = Estimate(1.0, 0.0)

    def row(name, ratio, wins, losses):
        return Overall(name, Estimate(ratio, 0.0), wins, losses, 9, one, "here")

    rows = [row("naive", 0.1, 9, 0), row("a", 0.3, 5, 1), row("b", 0.5, 4, 0), row("c", 0.4, 4, 0)]
    assert recommended(rows).name == "c"


def test_a_table_refuses_ragged_rows():
    with pytest.raises(ValueError, match="2 cells"):
        table(["a", "b"], [["1"]])


def test_too_few_repeats_are_refused():
    with pytest.raises(ValueError, match="repeats must be at least 2"):
        evidence(real_compare, 1, 0)


# The run


@pytest.mark.parametrize(
    ("data_sets", "told"),
    [
        ({"a": (1500, 0), "b": (20, 0)}, "All of its 1,520 data sets were computed in it."),
        (
            {"a": (0, 30), "b": (0, 30)},
            "All of its 60 data sets were taken from the store, whose seconds, below, are those of "
            "the run that made them.",
        ),
        (
            {"a": (30, 0), "b": (0, 30), "c": (5, 25)},
            "Of its 90 data sets 35 were computed in it: 30 of 30 of a, 5 of 30 of c. The other 55 "
            "were taken from the store, whose seconds, below, are those of the run that made them.",
        ),
        (
            {name: (1, 1) for name in "abcdefgh"} | {"z": (0, 2)},
            "Of its 18 data sets 8 were computed in it: in 8 of 9 settings. The other 10 were "
            "taken from the store, whose seconds, below, are those of the run that made them.",
        ),
    ],
)
def test_a_run_says_what_it_computed_and_what_it_found(data_sets, told):
    run = Run("do", 1, {"comparisons": 98.0, "x": 0.5, "y": 1.5}, data_sets)
    time = (
        "The run took 100 s of wall time with 1 worker: comparisons 98 s, the other 2 together 2 s."
    )
    assert run.described() == f"{time} {told}"


def test_no_run_is_nothing_told():
    assert Run().described({"other evidence": 3.0}) == ""


def test_seconds_are_summed_by_strategy_and_family():
    measured = World(seconds={SPLIT: 0.5}).evidence()
    header, rows = spent_rows(measured)
    assert header == ["strategy", "known variance, s", "unknown variance, s", "Jaakkola, s",
                      "mean-field, s", "all, s"]  # fmt: skip
    split = [float(cell) for cell in next(row for row in rows if row[0] == SPLIT)[1:]]
    # Seven settings of known variance in two versions, three of unknown, one the same in both.
    expected = [0.5 * REPEATS * settings for settings in (14, 5, 2, 2, 23)]
    assert split == pytest.approx(expected, abs=0.1)
    whole = [float(cell.replace(",", "")) for cell in rows[-1][1:]]
    assert rows[-1][0] == "all" and whole[-1] == pytest.approx(sum(whole[:-1]), abs=0.3)


# The page


def small(settings):
    """Shrink what is slow."""
    return {
        key: replace(setting, n=14, d=3) if hasattr(setting, "d") else setting
        for key, setting in settings.items()
    }


MEMORY = {}


def cheaper(strategy, key):
    """Take few draws, and few fits where each is an iteration."""
    if isinstance(strategy, Bootstrap):
        return Bootstrap(n_draws=2)
    many = isinstance(strategy, (KFold, LeaveOneOut, SafeBayes)) and key.startswith("logistic")
    return KFold(2, transfer=strategy.transfer) if many else strategy


def written():
    """Write a page from a small real study, which is run once."""
    original, memory = temperance_studies.thesis.settings.thesis_settings, MEMORY

    def compare(settings, strategies, repeats, seed):
        quick = {name: cheaper(each, *settings) for name, each in strategies.items()}
        key = (*settings, *settings.values(), *quick)
        if key not in memory:
            memory[key] = real_compare(
                settings, quick, repeats=repeats, seed=seed, n_jobs=1, progress=False
            )
        return memory[key]

    with pytest.MonkeyPatch.context() as patch, joblib.parallel_config(backend="sequential"):
        patch.setattr(
            temperance_studies.thesis.settings,
            "thesis_settings",
            lambda *options: small(original(*options)),
        )
        seconds = {"comparisons": 12.3, "the rest": 4.5}
        return page(evidence(compare, 2, 0), Run("do it", 2, seconds, {"here": (4, 2)}))


@pytest.fixture(scope="module")
def text():
    return written()


def tables(text):
    """Tables of a page, as lists of rows of cells."""
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        yield [re.split(r"(?<!\\)\|", line)[1:-1] for line in block.splitlines()]


def test_the_page_is_complete(text):
    first = next(tables(text))
    rows = {int(row[0]): [each.strip() for each in row] for row in first[2:]}
    assert len(rows) == len(CLAIMS) >= 25
    for number, claim in enumerate(CLAIMS, 1):
        _, quote, where, test, stated, coded, support, verdict = rows[number]
        assert (quote, where, test) == (claim.quote, claim.where, claim.test)
        word = verdict.removesuffix(" (open)")
        assert word in ("**holds**", "**fails**", "**depends**", "**open**")
        assert ("open" in verdict) == (word != "**holds**" and "✗" not in support)
        assert re.search(r"\d", stated)
        assert coded in ("same", "not measured") or re.search(r"\d", coded)
        assert (coded == "same") == (claim.one_version)
        assert re.search(r"[✓✗?]", support)
    for heading in ("Verdicts", "Over all settings", "Is it better to keep beta", "Which strategy"):
        assert f"\n## {heading}" in text
    assert "```sh\ndo it\n```" in text
    told = "The run took 17 s of wall time with 2 workers: comparisons 12 s, the rest 4 s."
    assert f"\n{told} Of the verdicts: comparisons " in text
    assert "2 data sets of each setting, seed 0" in text


def test_tables_are_well_formed(text):
    found = list(tables(text))
    assert len(found) >= 9
    for rows in found:
        assert {len(row) for row in rows} == {len(rows[0])}
        assert set("".join(rows[1])) == {"-"}


def test_the_page_says_nothing_about_the_machine(text):
    text = text.replace("https://arxiv.org/abs", "")
    assert not re.search(r"(?<![\w)/])/[a-z]+/", text)
    assert "nan" not in text.split()


@pytest.mark.slow
def test_the_page_is_the_same_for_the_same_seed(text):
    numbers = [number for number, claim in enumerate(CLAIMS, 1) if claim.timed]
    timed = [start for number in numbers for start in (f"| {number} |", f"- {number}, ")]

    def untimed(text):
        lines = text.splitlines()
        return [line for line in lines if not line.startswith((*timed, "Of ", "The run took "))]

    assert untimed(text) == untimed(written())


def test_settings_of_both_versions_are_told_apart():
    measured = World().evidence()
    assert "unknown-uniform" not in measured.settings(CODED)
    assert len(measured.present()) == 23
    assert set(measured.table["strategy"]) == set(compared("linear"))
