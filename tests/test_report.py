"""The numbers and words of a report are those of the estimator, from the file to the browser."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from browser import Visit
from scipy import optimize, stats

from temperance import GibbsClassifier, GibbsRegressor, losses, models, strategies
from temperance.app import report
from temperance.app.explanation import (
    explain,
    gain_in_words,
    in_percent,
    name_of_choice,
    unrepaired,
    verdict,
)
from temperance.app.held_out import Forecasts, HeldOut, hold_out
from temperance.app.report.compute import _comparison_in_words
from temperance.app.tables import prepare
from temperance.calibration import VERDICTS, Calibration, Rate
from temperance.rules import BetaWeights, Choice, Gain
from temperance.table import held_out_losses

pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")

THREE = ("high", "low", "middle")


def numbers(columns=1, n=40):
    random = np.random.default_rng(5)
    X = random.normal(size=(n, columns))
    y = 3 + X @ np.linspace(0.2, 2, columns) + 2 * random.standard_t(4, n)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(columns)]).assign(y=y)


def labels(classes=("no", "yes"), columns=1, n=40):
    random = np.random.default_rng(6)
    X = random.normal(size=(n, columns))
    place = np.digitize(X[:, 0] + random.normal(size=n), np.linspace(-0.5, 0.5, len(classes))[1:])
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(columns)])
    return frame.assign(y=np.array(classes)[place])


class Case:
    """A fitted estimator with its table, and the report on both."""

    def __init__(self, estimator, frame, held=None, weights=None):
        self.table = prepare(frame, "y", name="data", weights=weights)
        inputs, target, weight = self.table.inputs, self.table.target, self.table.weights
        self.held = hold_out(estimator, inputs, target, weight, n_folds=2) if held is None else held
        self.fitted = estimator.fit(inputs, target, sample_weight=weight)
        own = self.fitted.calibration_
        self.choices = {"bayes": replace(own, choice=Choice(1.0, searched=False)), "k-fold": own}
        self.contents = report.compute(
            self.fitted,
            self.table,
            self.choices,
            "k-fold",
            self.held,
            [("", "strategy"), ("1", "k-fold")],
            ["A notice."],
            [("seed", "0")],
            "temperance calibrate",
        )

    @property
    def pairs(self):
        """Each part of the report with its place and its calibration."""
        calibrations = [each for _, each in self.fitted.parts()]
        return list(zip(self.contents.parts, range(len(calibrations)), calibrations, strict=True))

    def law(self, k, beta=None):
        """The coefficients at a beta, or at the choice."""
        if hasattr(self.fitted, "classes_"):
            return self.fitted.coefficients(k, beta=beta)
        return self.fitted.coefficients(beta=beta)


CASES = {
    "unknown variance": lambda: Case(GibbsRegressor(random_state=0), numbers(columns=3)),
    "known variance": lambda: Case(GibbsRegressor(noise_variance=1.0, random_state=0), numbers()),
    "polynomial": lambda: Case(
        GibbsRegressor(noise_variance=1.0, degree=3, random_state=0), numbers()
    ),
    "no intercept": lambda: Case(
        GibbsRegressor(noise_variance=0.5, fit_intercept=False, random_state=0),
        numbers(columns=2),
    ),
    "one beta": lambda: Case(
        GibbsRegressor(strategy="k-fold", prior_scale=1.0, random_state=0), numbers(columns=2)
    ),
    "draws": lambda: Case(GibbsRegressor(target="draws", random_state=0), numbers(columns=2)),
    "two classes": lambda: Case(GibbsClassifier(posterior="laplace", random_state=0), labels()),
    "three classes": lambda: Case(
        GibbsClassifier(posterior="laplace", random_state=0), labels(THREE)
    ),
    "weights": lambda: Case(
        GibbsRegressor(random_state=0),
        numbers(columns=2).assign(weight=np.arange(40.0) % 3),
        weights="weight",
    ),
}


@cache
def made(name):
    return CASES[name]()


@pytest.fixture(params=CASES)
def case(request):
    return made(request.param)


class mixture:  # noqa: N801
    """The law of one number, by scipy."""

    def __init__(self, law, j):
        dof = np.atleast_1d(law.dof)
        location, scale = (np.atleast_2d(each)[:, j] for each in (law.location, law.scale))
        self.weights = getattr(law, "weights", np.ones(1))
        self.parts = stats.t(dof, location, scale)

    def density(self, x):
        return self.parts.pdf(np.reshape(x, (-1, 1))) @ self.weights

    def cdf(self, x):
        return self.parts.cdf(np.reshape(x, (-1, 1))) @ self.weights

    def quantiles(self, levels):
        low, high = self.parts.ppf(1e-9).min(), self.parts.ppf(1 - 1e-9).max()
        return [
            optimize.brentq(lambda x, q=q: self.cdf(x)[0] - q, low, high, xtol=1e-14)
            for q in levels
        ]


def bayes_of(part):
    [index] = [i for i in np.flatnonzero(part.betas == 1) if not (part.mixed and i == part.at)]
    return index


class TestParts:
    def test_betas_ascend_over_the_bounds_and_hold_the_choice_and_bayes(self, case):
        for part, _, calibration in case.pairs:
            lower, upper = calibration.bounds
            alone = np.delete(part.betas, part.at) if part.mixed else part.betas
            assert np.all(np.diff(alone) > 0)
            assert np.all(np.diff(part.betas) >= 0)
            assert part.betas[part.at] == calibration.beta
            assert 1.0 in alone
            assert (alone[0], alone[-1]) == (max(lower, 0.001), upper)
            assert 30 < len(part.betas) < 60
            assert part.grain == 0
            t = np.log(part.betas)
            assert np.diff(t).max() < np.ptp(t) / 30

    def test_the_curve_is_the_calibrations(self, case):
        for part, _, calibration in case.pairs:
            one_by_one = [calibration.curve(beta) for beta in part.betas]
            np.testing.assert_allclose(part.risk, one_by_one, rtol=1e-12)
            mixed = calibration.weights is not None
            assert part.mixed == (in_percent(calibration.weights) if mixed else "")
            if not mixed:
                assert part.risk[part.at] == pytest.approx(calibration.risk, rel=1e-12)
            assert part.risk[bayes_of(part)] == pytest.approx(calibration.bayes_risk, rel=1e-12)
            alone = "single betas " if mixed else ""
            assert part.range_meaning == f"{alone}not told apart by the data"
            assert part.verdict == VERDICTS[calibration.verdict]
            assert (part.choice_risk, part.beta_range) == (
                calibration.risk,
                calibration.beta_range,
            )
            assert (part.standard_error, part.bayes_risk, part.gain, part.gain_error) == (
                calibration.standard_error,
                calibration.bayes_risk,
                calibration.gain,
                calibration.gain_standard_error,
            )

    def test_coefficients_have_95_percent_intervals_at_the_choice_and_at_bayes(self, case):
        first = 0 if case.fitted.fit_intercept else 1
        names = ["intercept", *case.fitted.coordinates_.names(list(case.table.inputs.columns))]
        for part, k, _ in case.pairs:
            assert [each.name for each in part.coefficients] == names[first:]
            for side, beta in (("bayes", 1.0), ("calibrated", None)):
                law = case.law(k, beta)
                for j, coefficient in enumerate(part.coefficients, first):
                    interval = getattr(coefficient, side)
                    ends = mixture(law, j).quantiles([0.025, 0.975])
                    found = (interval.mean, interval.low, interval.high)
                    wanted = (law.mean[j], *ends)
                    assert found == pytest.approx(wanted, rel=1e-6, abs=1e-9)

    def test_coefficients_at_the_choice_are_those_of_the_fit(self, case):
        coefficients = np.atleast_2d(case.fitted.coef_)
        for part, k, _ in case.pairs:
            means = [each.calibrated.mean for each in part.coefficients]
            np.testing.assert_allclose(
                means[-coefficients.shape[1] :], coefficients[k], rtol=1e-9, atol=1e-12
            )
            if case.fitted.fit_intercept:
                assert means[0] == pytest.approx(np.atleast_1d(case.fitted.intercept_)[k])

    def test_marginals_are_those_of_each_beta(self, case):
        names = case.fitted.coordinates_.names(list(case.table.inputs.columns))
        for part, k, _ in case.pairs:
            assert part.marginals.names == names
            for i, beta in enumerate(part.betas):
                law = case.law(k, None if i == part.at else beta)
                np.testing.assert_allclose(part.marginals.mean[i], law.mean[1:], atol=1e-12)
                for j in range(len(names)) if i % 7 == 0 or i == part.at else ():
                    points = law.mean[1 + j] + part.marginals.offset[i, j]
                    assert np.all(np.diff(points) > 0)
                    density = mixture(law, 1 + j).density(points)
                    height = part.marginals.height[i, j]
                    np.testing.assert_allclose(height, density / density.max(), atol=0.005)
                    tails = mixture(law, 1 + j).cdf(points[[0, -1]])
                    np.testing.assert_allclose(tails, stats.norm.cdf([-3.6, 3.6]), atol=1e-3)

    def test_a_single_input_has_a_band_of_95_percent(self, case):
        fitted, inputs = case.fitted, case.table.inputs
        for part, k, _ in case.pairs:
            if inputs.shape[1] > 1:
                assert part.band is None
                continue
            grid = pd.DataFrame({"x0": part.band.grid})
            reach = 0.05 * np.ptp(inputs["x0"])
            assert part.band.grid[0] == pytest.approx(inputs["x0"].min() - reach)
            assert part.band.grid[-1] == pytest.approx(inputs["x0"].max() + reach)
            places = list(enumerate(part.betas))
            for i, beta in [*places[::7], places[part.at]]:
                if hasattr(fitted, "classes_"):
                    beta = None if i == part.at else beta
                    ends = fitted.predict_interval(grid, 0.95, beta=beta).reshape(len(grid), -1, 2)
                    low, high = ends[:, k].T
                    mean = fitted.predict_proba(grid, beta=beta)[
                        :, k if len(fitted.classes_) > 2 else 1
                    ]
                else:
                    law = fitted.forecast(grid, beta=None if i == part.at else beta)
                    low, high = law.interval(0.95).T
                    mean = law.mean
                    np.testing.assert_allclose(law.cdf(low), 0.025, rtol=1e-6)
                np.testing.assert_allclose(part.band.mean[i], mean, rtol=1e-10)
                np.testing.assert_allclose(part.band.low[i], low, rtol=1e-9)
                np.testing.assert_allclose(part.band.high[i], high, rtol=1e-9)
            response = case.table.target
            if hasattr(fitted, "classes_"):
                response = (response == part.name).astype(float)
                assert part.band.response_name == f"y = {part.name}"
            np.testing.assert_array_equal(
                part.band.points, np.column_stack([inputs["x0"], response])
            )

    def test_choices_are_those_of_the_strategies(self, case):
        for part, _, calibration in case.pairs:
            assert [(each.strategy, each.beta, each.own) for each in part.choices] == [
                ("bayes", 1.0, False),
                ("k-fold", calibration.beta, True),
            ]
            bayes, own = part.choices
            assert bayes.weights == []
            weights = calibration.weights
            pairs = [] if weights is None else zip(weights.betas, weights.weights, strict=True)
            assert own.weights == [(beta, weight) for beta, weight in pairs if weight >= 0.01]

    def test_the_page_can_be_drawn(self, case):
        assert report.render(case.contents).startswith("<!DOCTYPE html>")


class TestContents:
    def test_what_is_handed_on(self):
        contents = made("known variance").contents
        assert contents.title == "How far to trust a model of y"
        assert contents.risk_name == "predictive"
        assert contents.settings == [("seed", "0")]
        assert contents.command == "temperance calibrate"
        assert contents.notices == ["A notice."]
        assert contents.ranking == [("", "strategy"), ("1", "k-fold")]

    def test_the_words_begin_with_the_explanation(self):
        case = made("three classes")
        assert [part.name for part in case.contents.parts] == list(THREE)
        told = fared(case, case.held)
        assert case.contents.words == [explain(case.fitted.calibration_), told]

    def test_of_many_coefficients_the_twelve_surest_have_marginals(self):
        case = Case(GibbsRegressor(random_state=0), numbers(columns=15, n=80))
        [part] = case.contents.parts
        law = case.fitted.coefficients()
        sure = np.sort(np.argsort(-np.abs(law.mean[1:]) / law.std[1:])[:12])
        assert part.marginals.names == [f"x{j}" for j in sure]
        np.testing.assert_allclose(part.marginals.mean[part.at], law.mean[1 + sure])
        assert part.marginals.height.shape == (len(part.betas), 12, 25)
        assert len(part.coefficients) == 16

    @pytest.mark.parametrize("intercept", [True, False])
    def test_of_very_many_coefficients_the_surest_are_shown(self, intercept):
        estimator = GibbsRegressor(fit_intercept=intercept, random_state=0)
        case = Case(estimator, numbers(columns=230, n=20))
        [part] = case.contents.parts
        assert part.n_coefficients == 230 + intercept
        assert len(part.coefficients) == 200
        law = case.fitted.coefficients()
        strength = np.abs(law.mean[1:]) / law.std[1:]
        kept = [int(each.name[1:]) for each in part.coefficients[int(intercept) :]]
        assert (part.coefficients[0].name == "intercept") == intercept
        assert kept == sorted(kept)
        assert min(strength[kept]) >= max(np.delete(strength, kept))
        shown = part.coefficients[-1]
        assert shown.calibrated.mean == pytest.approx(law.mean[1 + kept[-1]])
        assert '"n_coefficients":' in report.render(case.contents)

    def test_bounds_without_bayes(self):
        estimator = GibbsRegressor(bounds=(0.01, 0.3), random_state=0)
        case = Case(estimator, numbers(columns=2))
        [part] = case.contents.parts
        assert 1.0 not in part.betas
        assert part.betas[0] == 0.01
        assert part.betas[-1] == 0.3
        bayes = GibbsRegressor(strategy="bayes").fit(case.table.inputs, case.table.target)
        means = [each.bayes.mean for each in part.coefficients]
        np.testing.assert_allclose(means, bayes.coefficients().mean, rtol=1e-12)

    def test_a_point_close_below_does_not_take_the_place_of_the_choice(self):
        upper = 1.0 + 1e-9
        estimator = GibbsRegressor(strategy="bayes", bounds=(0, upper))
        [part] = Case(estimator, numbers(columns=2)).contents.parts
        assert part.betas[part.at] == 1.0
        assert part.betas[-1] == upper

    def test_the_slider_reaches_below_a_small_choice(self):
        estimator = GibbsRegressor(noise_variance=0.01, strategy="k-fold")
        [part] = Case(estimator, numbers(columns=2)).contents.parts
        beta = part.betas[part.at]
        assert beta < 1e-3
        assert part.betas[0] == pytest.approx(beta / 8)
        assert np.count_nonzero(part.betas < beta) > 2

    def test_a_choice_of_zero_is_on_the_slider(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"x": rng.standard_normal(60), "y": rng.standard_normal(60)})
        estimator = GibbsRegressor(
            noise_variance=1.0, fit_intercept=False, prior_scale=1e-2, strategy="k-fold"
        )
        case = Case(estimator, frame)
        case.fitted.calibration_ = replace(
            case.fitted.calibration_, choice=Choice(0.0, at_bound=True)
        )
        contents = report.compute(
            case.fitted, case.table, case.choices, "k-fold", case.held, [], [], [], ""
        )
        [part] = contents.parts
        assert (part.at, part.betas[0], part.betas[1], part.grain) == (0, 0.0, 0.001, 0.001)

    def test_a_mixture_and_bayes_may_share_a_beta_but_no_place(self):
        case = made("unknown variance")
        weights = BetaWeights(np.array([0.1, 1.0, 10.0]), np.array([0.3, 0.4, 0.3]))
        mixed = replace(
            case.fitted.calibration_, choice=Choice(1.0, searched=False, weights=weights)
        )
        fitted = GibbsRegressor(random_state=0).fit(case.table.inputs, case.table.target)
        fitted.calibration_ = mixed
        contents = report.compute(
            fitted, case.table, case.choices, "k-fold", case.held, [], [], [], ""
        )
        [part] = contents.parts
        assert np.flatnonzero(part.betas == 1).tolist() == [part.at, part.at + 1]
        wide, narrow = (part.marginals.offset[k, 0, -1] for k in (part.at, part.at + 1))
        assert wide > 1.5 * narrow

    def test_the_class_that_is_modelled_and_the_reference_level_are_said(self):
        frame = labels(columns=2).assign(hue=["red", "blue", "red", "green"] * 10)
        contents = Case(GibbsClassifier(posterior="laplace", random_state=0), frame).contents
        assert contents.words[0] == "The model gives the probability of y = yes, against no."
        assert contents.reading == "Levels of text are compared: 'hue' with 'red'."
        assert made("unknown variance").contents.reading == ""
        names = [each.name for each in contents.parts[0].coefficients]
        assert names == ["intercept", "x0", "x1", "hue=blue", "hue=green"]

    @pytest.mark.parametrize("name", ["index", "<b>"])
    def test_an_input_of_any_name_has_a_band(self, name):
        case = Case(
            GibbsRegressor(noise_variance=1.0, random_state=0),
            numbers().rename(columns={"x0": name}),
        )
        [part] = case.contents.parts
        assert part.band.input_name == name
        law = case.fitted.forecast(pd.DataFrame({name: part.band.grid}))
        np.testing.assert_array_equal(part.band.mean[part.at], law.mean)


class TestHeldOut:
    def test_intervals_against_a_count(self):
        case = made("weights")
        kept = case.contents.held_out
        assert (kept.kind, kept.rows) == ("intervals", 40)
        weights = case.table.weights
        np.testing.assert_array_equal(kept.bayes.promised[-2:], [0.9, 0.95])
        for found, place in (
            (kept.bayes, case.held.bayes.place),
            (kept.calibrated, case.held.calibrated.place),
        ):
            for level, share, error in zip(
                found.promised, found.happened, found.error, strict=True
            ):
                inside = (place >= (1 - level) / 2) & (place <= (1 + level) / 2)
                expected = weights[inside].sum() / weights.sum()
                assert share == pytest.approx(expected)
                spread = np.sqrt(expected * (1 - expected) / (weights.sum() - 1))
                assert error == pytest.approx(spread, abs=1e-12)

    @pytest.mark.parametrize(("classes", "weighted"), [(("no", "yes"), False), (THREE, True)])
    def test_probabilities_against_a_count(self, classes, weighted):
        frame = labels(classes, columns=2, n=60)
        if weighted:
            frame["weight"] = np.arange(60) % 4
        case = Case(
            GibbsClassifier(posterior="laplace", strategy="k-fold", random_state=0),
            frame,
            weights="weight" if weighted else None,
        )
        kept = case.contents.held_out
        assert (kept.kind, kept.rows) == ("probabilities", 60)
        weights = frame["weight"].to_numpy() if weighted else np.ones(60)
        for found, forecast in ((kept.bayes, case.held.bayes), (kept.calibrated, None)):
            shares = (forecast or case.held.calibrated).probabilities
            expected = []
            for low in np.arange(10) / 10:
                given, came, count = [], [], []
                for i in range(60):
                    for j, name in enumerate(classes):
                        if name == "no" or not low <= shares[i, j] < low + 0.1:
                            continue
                        given.append(shares[i, j])
                        came.append(case.table.target[i] == name)
                        count.append(weights[i])
                if np.sum(count) > 0:
                    total, hits = np.sum(count), np.dot(count, came)
                    middle = (hits + 1) / (total + 2)
                    error = np.sqrt(middle * (1 - middle) / (total + 2))
                    expected.append((np.average(given, weights=count), hits / total, error))
            promised, happened, error = np.transpose(expected)
            assert len(promised) > 3
            np.testing.assert_allclose(found.promised, promised, rtol=1e-9)
            np.testing.assert_allclose(found.happened, happened, rtol=1e-9)
            np.testing.assert_allclose(found.error, error, rtol=1e-9)

    def test_certainty_belongs_to_the_last_bin(self):
        case = made("two classes")
        sure = np.column_stack([np.zeros(40), np.ones(40)])
        certain = Forecasts(np.zeros(40), probabilities=sure)
        held = HeldOut(certain, certain, np.zeros(40), np.ones(40))
        kept = report.compute(
            case.fitted, case.table, case.choices, "k-fold", held, [], [], [], ""
        ).held_out.bayes
        np.testing.assert_array_equal(kept.promised, [1.0])
        np.testing.assert_allclose(kept.happened, [np.mean(case.table.target == "yes")])

    def test_scores_of_intervals(self):
        case = made("weights")
        measures = [measure for measure, *_ in case.contents.held_out.scores]
        assert measures == [
            "log score per row (higher is better)",
            "responses inside 50 % intervals, in %",
            "responses inside 95 % intervals, in %",
            "promised against happened, mean gap in %",
        ]
        weights = case.table.weights
        for (_, *printed), values in zip(
            case.contents.held_out.scores[:-1],
            [
                [each.log_score for each in (case.held.bayes, case.held.calibrated)],
                *(
                    [
                        100.0 * (np.abs(each.place - 0.5) <= level / 2)
                        for each in (case.held.bayes, case.held.calibrated)
                    ]
                    for level in (0.5, 0.95)
                ),
            ],
            strict=True,
        ):
            for text, value in zip(printed, values, strict=True):
                mean = float(text.split(" ± ")[0])
                assert mean == pytest.approx(np.average(value, weights=weights), rel=1e-2)
        kept = case.contents.held_out
        gaps = [
            np.mean(np.abs(each.happened - each.promised)) for each in (kept.bayes, kept.calibrated)
        ]
        assert kept.scores[-1][1:] == tuple(f"{100 * gap:.1f}" for gap in gaps)

    def test_scores_of_classes(self):
        case = made("three classes")
        [_, (measure, bayes, calibrated)] = case.contents.held_out.scores
        assert measure == "classes guessed right, in %"
        for text, forecast in ((bayes, case.held.bayes), (calibrated, case.held.calibrated)):
            guesses = np.array(THREE)[forecast.probabilities.argmax(axis=1)]
            right = 100 * np.mean(guesses == case.table.target)
            assert float(text.split(" ± ")[0]) == pytest.approx(right, abs=0.1)


def with_scores(kind, difference, places=(0.5, 0.5)):
    """A report on forecasts whose log score differs by so much, give or take 0.1 per row."""
    case = made(kind)
    rows = len(case.table.target)
    jitter = np.where(np.arange(rows) % 2, 0.1, -0.1)
    if case.held.bayes.place is None:
        more = [{"probabilities": case.held.bayes.probabilities}] * 2
    else:
        more = [{"place": np.where(np.arange(rows) < rows * p, 0.5, 0.999)} for p in places]
    bayes = Forecasts(np.zeros(rows), **more[0])
    calibrated = Forecasts(difference + jitter, **more[1])
    return fared(case, HeldOut(calibrated, bayes, np.zeros(rows), np.ones(rows)))


def fared(case, held):
    calibration = case.fitted.calibration_
    return _comparison_in_words(held, calibration.kind, name_of_choice(calibration))


ERROR = f"{0.1 / np.sqrt(39):.3f}"
INTERVALS = (
    "On held-out rows, Bayes' 95 % intervals held 50 % of the responses and those of the {} 90 %; "
    "the log score per row changed by"
)
MIXED, ONE = INTERVALS.format("mixture over β"), INTERVALS.format("chosen β")
FARED = {
    "better": (
        "known variance",
        0.5,
        f"{MIXED} 0.500 ± {ERROR}: forecasts by the mixture over β were clearly better.",
    ),
    "worse": (
        "known variance",
        -0.5,
        f"{MIXED} -0.500 ± {ERROR}: forecasts by the mixture over β were clearly worse.",
    ),
    "worse by the gibbs risk": (
        "draws",
        -0.5,
        f"{ONE} -0.500 ± {ERROR}: forecasts by the chosen β were clearly worse; --for "
        "forecasts would aim at them.",
    ),
    "a little better": (
        "known variance",
        0.02,
        f"{MIXED} 0.020 ± {ERROR}, which is no clear difference.",
    ),
    "a little worse": (
        "one beta",
        -0.02,
        f"{ONE} -0.020 ± {ERROR}, which is no clear difference.",
    ),
    "classes": (
        "two classes",
        0.5,
        f"On held-out rows, the log score per row changed by 0.500 ± {ERROR}: forecasts by "
        "the mixture over β were clearly better.",
    ),
    "no difference": (
        "three classes",
        0.0,
        f"On held-out rows, the log score per row changed by 0.000 ± {ERROR}, which is no clear "
        "difference.",
    ),
}


@pytest.mark.parametrize(("kind", "difference", "words"), FARED.values(), ids=FARED)
def test_words_on_rows_held_out(kind, difference, words):
    assert with_scores(kind, difference, places=(0.5, 0.9)) == words


def choice(
    beta,
    gain=0.3,
    error=0.05,
    bounds=(0.0, 3.0),
    kind="predictive",
    model=None,
    between=(0.03, 4.0),
    strategy=None,
    few=False,
    **found,
):
    table = held_out_losses(np.ones(1), np.zeros((1, 2)))
    calibration = Calibration(model, None, strategy, kind, bounds, Choice(beta, **found), table)
    vars(calibration).update(
        beta_range=between, _risk=(1.0, 0.1), bayes_risk=1.0 + gain, _gain=Gain(gain, error, few)
    )
    return calibration


def weights(*given):
    return BetaWeights(*np.transpose(given))


RANGE = "The data do not tell β from 0.03 to 4 apart."
CLEAR = "Temper: the estimated gain over Bayes, 0.300 ± 0.050 per observation, is clear."
NOTHING = (
    "Keep Bayes: the estimated gain over it, 0.040 ± 0.050 per observation, is less than two "
    "standard errors from zero: the data do not tell."
)
LESS = (
    "The data deserve less trust than Bayes gives them: each observation should count as 0.5 of "
    "one. The posterior is wider than Bayes', as that of a model that is partly wrong should be."
)
MIXED_BEST = "Forecasts are mixed over β, with the weights that forecast held-out rows best."
NO_SINGLE = "The data do not tell single β from 0.03 to 4 apart."
GUESS = "If the noise variance is a guess, a model that infers it is the better repair: β"
EXPLAINED = {
    "given": (
        choice(1.0, searched=False),
        "β was given, not chosen: each observation counts once, as the likelihood says. The risk "
        "is that on the rows which the posterior was fitted to.",
    ),
    "flat": (
        choice(1.0, flat=True),
        "The estimated risk does not depend on β, so the data say nothing about it; β stays as "
        "close to Bayes as the bounds allow.",
    ),
    "zero": (
        choice(0.0, at_bound=True),
        f"{CLEAR} The prior alone predicts better than anything learnt from these data (β = 0): "
        f"check the model, the units and the prior. {RANGE}",
    ),
    "upper bound, gibbs": (
        choice(3.0, at_bound=True, kind="gibbs"),
        f"{CLEAR} The gibbs risk falls up to the upper bound, β = 3: it rewards narrow posteriors "
        f"and mostly does, so the bound is a convention. {RANGE}",
    ),
    "upper bound, predictive": (
        choice(0.5, at_bound=True, bounds=(0.0, 0.5)),
        f"{CLEAR} The predictive risk falls up to the upper bound, β = 0.5: see whether wider "
        f"bounds do better, or whether the prior is too tight. {RANGE}",
    ),
    "upper bound, unclear": (
        choice(3.0, gain=0.04, at_bound=True, model=models.GaussianLinear()),
        f"{NOTHING} The predictive risk falls up to the upper bound, β = 3: see whether wider "
        "bounds do better, or whether the noise variance is too large or the prior too tight. "
        f"{RANGE}",
    ),
    "lower bound": (
        choice(0.25, at_bound=True, bounds=(0.25, 3.0)),
        f"{CLEAR} The risk is smallest at the lower bound: each observation should count as 0.25 "
        f"of one, or less; try wider bounds. {RANGE}",
    ),
    "below one": (
        choice(0.04485),
        f"{CLEAR} {LESS.replace('0.5', '0.0449')} {RANGE}",
    ),
    "known variance": (
        choice(0.5, model=models.GaussianLinear()),
        f"{CLEAR} {LESS} {RANGE} {GUESS} widens forecasts and coefficients alike.",
    ),
    "above one": (
        choice(1.5),
        f"{CLEAR} The data deserve more trust than Bayes gives them: each observation should count "
        f"as 1.5 of one. The posterior is narrower than Bayes'. {RANGE}",
    ),
    "unclear": (
        choice(0.9, gain=0.04),
        f"{NOTHING} β = 0.9 has the smallest estimated risk. {RANGE}",
    ),
    "one beta is left": (
        choice(0.9, gain=0.04, between=(0.9, 0.9)),
        f"{NOTHING} β = 0.9 has the smallest estimated risk.",
    ),
    "likely": (
        choice(0.5, gain=0.08),
        "Temper: the estimated gain over Bayes, 0.080 ± 0.050 per observation, is more than one "
        f"standard error from zero, but less than two. {LESS} {RANGE}",
    ),
    "from few rows": (
        choice(0.5, few=True),
        "Temper: the estimated gain over Bayes, 0.300 ± 0.050 per observation, much of it from "
        f"few rows, is clear. {LESS} {RANGE}",
    ),
    "clear but small": (
        choice(0.9, gain=0.004, error=0.001, few=True),
        "Keep Bayes: the estimated gain over it, 0.0040 ± 0.0010 per observation, is clear but "
        f"small. β = 0.9 has the smallest estimated risk. {RANGE}",
    ),
    "about as well": (
        choice(0.9, gain=0.002, error=0.003),
        "Keep Bayes: the estimated gain over it, 0.0020 ± 0.0030 per observation, is at most 0.01. "
        f"β = 0.9 has the smallest estimated risk. {RANGE}",
    ),
    "no error": (
        choice(0.5, error=np.nan),
        "Keep Bayes: the estimated gain over it is 0.3 per observation, and its error is not "
        f"known. β = 0.5 has the smallest estimated risk. {RANGE}",
    ),
    "no rows held out": (
        choice(1.5, strategy=strategies.Naive()),
        f"The{CLEAR.removeprefix('Temper: the')} The data deserve more trust than Bayes gives "
        "them: each observation should count as 1.5 of one. The posterior is narrower than "
        f"Bayes'. {RANGE}",
    ),
    "mixture": (
        choice(1.2, searched=False, weights=weights((0.6, 0.25), (1.2, 0.5), (2.4, 0.25))),
        f"{CLEAR} {MIXED_BEST} {NO_SINGLE}",
    ),
    "mixture, known variance": (
        choice(
            1.2,
            searched=False,
            weights=weights((0.6, 0.5), (2.4, 0.5)),
            model=models.GaussianLinear(),
        ),
        f"{CLEAR} {MIXED_BEST} {NO_SINGLE} {GUESS} changes the widths of forecasts and "
        "coefficients alike.",
    ),
    "mixture, worse": (
        choice(1.2, gain=-0.01, searched=False, weights=weights((0.6, 0.5), (2.4, 0.5))),
        "Keep Bayes: the estimated gain over it is -0.010 ± 0.050 per observation. "
        f"{MIXED_BEST} {NO_SINGLE}",
    ),
    "mixture of one": (
        choice(1.0, gain=0.04, searched=False, weights=weights((0.3, 0.001), (1.0, 0.999))),
        f"{NOTHING} Forecasts may be mixed over β, but the mixture that forecast held-out rows "
        f"best has its weight at β = 1, which is Bayes. {NO_SINGLE}",
    ),
    "mixture, fitted exactly": (
        choice(1.0, flat=True, searched=False, weights=weights((0.3, 0.0), (1.0, 1.0))),
        "The model can fit the responses exactly, so that held-out rows say nothing about β: "
        "forecasts are Bayes'.",
    ),
    "mixture of another one": (
        choice(0.3, searched=False, weights=weights((0.3, 0.995), (1.0, 0.005))),
        f"{CLEAR} Forecasts may be mixed over β, but the mixture that forecast held-out rows "
        f"best has its weight at β = 0.3. {NO_SINGLE}",
    ),
}


@pytest.mark.parametrize(("calibration", "words"), EXPLAINED.values(), ids=EXPLAINED)
def test_explanations(calibration, words):
    assert explain(calibration) == words


@pytest.mark.parametrize("gain", [0.0999, 0.1001])
def test_two_standard_errors_are_clear(gain):
    clear = "is clear." in explain(choice(0.5, gain=gain))
    assert clear == (gain > 0.1)
    assert ("but less than two." in explain(choice(0.5, gain=gain))) != clear


@pytest.mark.parametrize("gain", [0.0549, 0.0551])
def test_a_gain_worth_it_by_more_than_its_error_is_to_temper(gain):
    calibration = choice(0.5, gain=gain)
    word = VERDICTS[verdict(calibration)]
    assert word == ("temper" if gain > 0.055 else "keep Bayes")
    assert gain_in_words(calibration) == f"{gain:.3f} ± 0.050 over Bayes: {word}"
    assert explain(calibration).startswith(word.capitalize().replace("bayes", "Bayes"))


@pytest.mark.parametrize(
    "calibration",
    [
        choice(1.5, strategy=strategies.Naive()),
        replace(choice(1.5), table=None),
        replace(choice(1.5), rate=Rate(1.5, "a rule")),
        choice(1.5, model=models.GibbsLinear(losses.Pinball(0.5))),
    ],
    ids=["no rows held out", "no table", "a rule", "no likelihood"],
)
def test_without_held_out_rows_or_bayes_there_is_no_verdict(calibration):
    assert verdict(calibration) is None


def places(shares, rows):
    """Held-out rows of which so many shares fell into intervals of 50, 80 and 95 %."""
    ends = [0.0, 0.5, 0.8, 0.95, 1.0]
    steps = np.diff([0.0, *shares, 1.0])
    middles = (np.array(ends[1:]) + ends[:-1]) / 2
    inside = np.repeat(middles, np.round(rows * steps).astype(int))
    forecasts = Forecasts(np.zeros(rows), place=0.5 + inside / 2)
    return HeldOut(forecasts, forecasts, np.zeros(rows), np.ones(rows))


@pytest.mark.parametrize(
    ("shares", "rows", "told"),
    [
        ((0.5, 0.8, 0.95), 400, False),
        ((0.54, 0.84, 0.95), 4000, False),  # less than a twentieth
        ((0.57, 0.8, 0.95), 400, False),  # less than three standard errors
        ((0.6, 0.8, 0.95), 400, True),
        ((0.5, 0.8, 0.88), 400, True),
    ],
)
def test_intervals_that_miss_are_told(shares, rows, told):
    held = places(shares, rows)
    said = unrepaired(choice(0.9), held)
    first, second, third = (f"{100 * share:.0f}" for share in shares)
    assert said == (
        told
        * f"Intervals of 50, 80 and 95 % covered {first}, {second} and {third} % of the held-out "
        "responses, which is not chance, and choosing β did not repair it: transform the "
        "response (its logarithm, say), or take a model whose noise has heavier tails or varies "
        "with the inputs."
    ) or (said == "" and not told)
    known = unrepaired(choice(0.9, model=models.GaussianLinear()), held)
    assert known.endswith("did not repair it: let the model infer its noise variance.") == told
    assert unrepaired(choice(0.9, kind="gibbs"), held) == ""
    assert unrepaired(choice(1.0, searched=False), held) == ""
    # Without rows held out, another beta might.
    assert unrepaired(choice(3.0, strategy=strategies.Naive()), held) == ""
    assert unrepaired(choice(3.0, strategy=strategies.KFold()), held) == said
    mixed = unrepaired(choice(0.9, searched=False, weights=weights((0.9, 1.0))), held)
    assert mixed == said.replace("choosing β", "mixing over β")


# --- from a file to a browser ---------------------------------------------------------------------


def test_a_file_becomes_a_page_that_works(browser, tmp_path):
    script = "<script>alert(1)</script>"
    frame = numbers().rename(columns={"x0": script, "y": "$y & </script>"})
    frame.to_csv(tmp_path / "data.csv", index=False)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "temperance", "calibrate", "data.csv"),
            *("--target", "$y & </script>", "--report", "page.html"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert script not in (tmp_path / "page.html").read_text(encoding="utf-8")
    seen = Visit(browser, tmp_path / "page.html")
    page = seen.page
    assert page.title() == "How far to trust a model of $y & </script>"
    assert page.evaluate("document.scripts.length") == 2
    names = page.locator(".coefficients tbody th").all_text_contents()
    assert names == ["intercept", script]
    fitted = GibbsRegressor(random_state=0).fit(frame[[script]], frame.iloc[:, 1])
    chosen = fitted.calibration_
    assert seen.text("#readout-beta") == "β mixed"
    assert seen.text("#tile-beta") == f"mixed {in_percent(chosen.weights)}"
    assert seen.text("#tile-verdict") == VERDICTS[chosen.verdict]
    assert f"{fitted.coef_[0]:.3g}" in page.locator(".coefficients tbody tr").nth(1).text_content()
    before = seen.state()
    seen.slide(5)
    after = seen.state()
    assert all(a != b for a, b in zip(before, after, strict=True))
    page.get_by_role("button", name="choice").click()
    assert seen.state() == before
    for strategy in ("leave-one-out", "safe-bayes"):
        assert page.locator("#risk-chart").get_by_text(strategy, exact=True).count() == 1
    assert "--report page.html" in seen.text("pre")
    assert seen.said == []
    assert seen.asked == [seen.own]
    seen.close()
