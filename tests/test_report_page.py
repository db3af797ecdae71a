"""The report page: what it says, and what it does in a browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from browser import Visit

from temperance.app.report.contents import (
    Band,
    Coefficient,
    Contents,
    HeldOutSummary,
    Interval,
    Marginals,
    ReliabilityCurve,
    ReportPart,
    StrategyChoice,
)
from temperance.app.report.page import MOST_POINTS, render

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "${x} $x $$ $title",
    "\"quoted\" and 'quoted' & <b>bold</b> <!-- <img src=x onerror=alert(3)>",
    "Größe \u2028 größer 温度 🌡 \u202eright to left",
    "",
    "a very long name of a column " * 12,
]
STRATEGIES = ["k-fold", "leave-one-out", "sample-splitting", "bootstrap", "safe-bayes", "naive"]


def betas_with(choice, upper=3.0, count=61):
    betas = upper * np.linspace(0.0, 1.0, count) ** 2
    return np.unique(np.concatenate([betas, [choice], [1.0] if upper >= 1 else []]))


def intervals(mean, scale):
    return [
        Interval(float(m), float(m - 1.96 * s), float(m + 1.96 * s))
        for m, s in zip(mean, scale, strict=True)
    ]


def gaussian_marginals(names, mean, scale):
    steps = np.linspace(-3.6, 3.6, 25)
    height = np.broadcast_to(np.exp(-0.5 * steps**2), (*mean.shape, 25))
    return Marginals(list(names), mean, scale[..., None] * steps, height.round(3), len(names))


def part_of(names, means, scales, *, name="", choice=0.0448, upper=3.0, band=None):
    """Posterior that shrinks towards 0 as beta does, over a risk curve with a steep start."""
    betas = betas_with(choice, upper)
    at = int(np.flatnonzero(betas == choice)[0])
    with np.errstate(divide="ignore"):
        weight = betas / (betas + 0.02)
        spread = np.minimum(1 / np.sqrt(betas), 40.0)
    risk = 1.5 + 0.9 * (np.sqrt(betas) - np.sqrt(choice)) ** 2 + 4 * np.exp(-betas / 0.004)
    mean, scale = weight[:, None] * np.asarray(means), spread[:, None] * np.asarray(scales)
    bayes = int(np.argmin(np.abs(betas - 1)))
    coefficients = [
        Coefficient(*each)
        for each in zip(
            names, intervals(mean[bayes], scale[bayes]), intervals(mean[at], scale[at]), strict=True
        )
    ]
    taken = [choice, choice, 0.0, 0.07, upper, upper]
    choices = [
        StrategyChoice(s, b, own=s == "k-fold") for s, b in zip(STRATEGIES, taken, strict=True)
    ] + [StrategyChoice("bayes", 1.0)]
    return ReportPart(
        name=name,
        betas=betas,
        grain=1e-3,
        risk=risk,
        at=at,
        mixed="",
        beta_range=(0.5 * choice, min(4 * choice, upper)),
        range_meaning="not told apart by the data",
        choice_risk=float(risk[at]),
        standard_error=0.0554,
        bayes_risk=float(risk[bayes]),
        gain=float(risk[bayes] - risk[at]),
        gain_error=0.06,
        verdict="temper",
        choices=choices,
        coefficients=coefficients,
        n_coefficients=len(coefficients),
        marginals=gaussian_marginals(names, mean, scale),
        band=band(betas) if band else None,
    )


def held_out_of(kind):
    promised = np.array([0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95])
    error = np.sqrt(promised * (1 - promised) / 221)
    return HeldOutSummary(
        kind=kind,
        rows=221,
        bayes=ReliabilityCurve(promised, 0.6 * promised + 0.1, error),
        calibrated=ReliabilityCurve(promised, promised + 0.01 * np.sin(9 * promised), error),
        scores=[
            ("loss of the forecasts (lower is better)", "2.236", "1.455"),
            ("share of responses in 95 % intervals", "66 %", "95 %"),
            ("mean width of 95 % intervals", "1.24", "2.71"),
        ],
    )


def contents_of(*parts, kind="intervals", notices=()):
    return Contents(
        title="How far to trust a Gaussian linear model of progression",
        words=[
            "The model is surer than its data allow. Ten-fold cross-validation takes β = 0.0448: "
            "each row counts for about a twentieth of what Bayes would have it count.",
            "On rows that were held out, 95 % intervals of Bayes held 66 % of the responses, "
            "and those of the chosen β 95 %.",
        ],
        risk_name="predictive",
        choice_name="chosen β",
        reading="Levels of text are compared: 'hue' with 'red'.",
        widths="Widths are those of tempered posteriors.",
        band=f"Mean and 95 % band of {kind}.",
        bayes=True,
        parts=list(parts),
        held_out=held_out_of(kind),
        ranking=[],
        notices=list(notices),
        settings=[
            ("model", "GaussianLinear(noise_variance=0.1)"),
            ("strategy", "KFold(n_folds=10, transfer='beta')"),
            ("rows", "442, of which 221 were held out"),
            ("bounds of β", "[0, 3]"),
            ("seed", "0"),
        ],
        command="temperance calibrate diabetes.csv --target progression --report out.html",
    )


def line_band(betas):
    random = np.random.default_rng(1)
    inputs = random.uniform(-2, 3, 150)
    responses = 1 + 0.8 * inputs + random.standard_t(3, 150)
    grid = np.linspace(-2.2, 3.2, 60)
    mean = (betas / (betas + 0.02))[:, None] * (1 + 0.8 * grid)
    half = 1.0 + 0.6 / np.sqrt(np.maximum(betas, 1e-3))[:, None] * (1 + 0.1 * grid**2)
    points = np.column_stack([inputs, responses])
    return Band("body mass index", "progression", grid, mean, mean - half, mean + half, points)


def chance_band(betas):
    random = np.random.default_rng(2)
    inputs = random.normal(size=200)
    responses = (random.uniform(size=200) < 1 / (1 + np.exp(-2 * inputs))).astype(float)
    grid = np.linspace(-3, 3, 60)
    score = 2 * (betas / (betas + 0.02))[:, None] * grid
    half = 0.3 / np.sqrt(np.maximum(betas, 1e-3))[:, None] * (1 + np.abs(grid))
    mean, low, high = (1 / (1 + np.exp(-s)) for s in (score, score - half, score + half))
    return Band("dose", "survival", grid, mean, low, high, np.column_stack([inputs, responses]))


def regression():
    """One input, so that the forecasts can be drawn."""
    return contents_of(part_of(["intercept", "bmi"], [1.0, 0.8], [0.03, 0.02], band=line_band))


def wide_regression():
    """Eighty coefficients of very different sizes, the marginals of twelve."""
    random = np.random.default_rng(0)
    sizes = 10.0 ** random.uniform(-2, 2, 80)
    names = [f"column {j}" for j in range(80)]
    part = part_of(names, sizes * random.normal(size=80), 0.1 * sizes)
    kept = part.marginals
    few = Marginals(
        kept.names[:12], kept.mean[:, :12], kept.offset[:, :12], kept.height[:, :12], 80
    )
    notices = ["The smallest risk is at the upper bound: allow larger β.", "Two rows are the same."]
    return contents_of(replace(part, marginals=few), notices=notices)


def like_sized_regression():
    """Ten coefficients that share a scale."""
    random = np.random.default_rng(5)
    names = ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]
    return contents_of(part_of(names, random.normal(0, 0.4, 10), np.full(10, 0.03)))


def two_classes():
    part = part_of(["intercept", "dose"], [0.1, 2.0], [0.1, 0.15], band=chance_band)
    return contents_of(part, kind="probabilities")


def three_classes():
    parts = [
        part_of(["intercept", "petal"], [s, 2 * s], [0.1, 0.1], name=n, choice=c, upper=u)
        for n, s, c, u in [
            ("setosa", 1, 0.3, 3),
            ("versicolor", -1, 0.9, 2),
            ("virginica", 3, 0.5, 0.8),
        ]
    ]
    return contents_of(*parts, kind="probabilities")


def hostile():
    part = part_of(HOSTILE, np.linspace(-1, 1, len(HOSTILE)), np.full(len(HOSTILE), 0.05))
    part = replace(part, name=HOSTILE[0], choices=[*part.choices, StrategyChoice(HOSTILE[0], 0.5)])
    contents = contents_of(part, replace(part, name=HOSTILE[1]), notices=HOSTILE[:4])
    scores = [(HOSTILE[0], HOSTILE[1], HOSTILE[2])]
    return replace(
        contents,
        title=HOSTILE[0],
        words=HOSTILE,
        risk_name=HOSTILE[0],
        held_out=replace(contents.held_out, scores=scores),
        settings=[(HOSTILE[0], HOSTILE[3])],
        command=HOSTILE[1] + HOSTILE[2],
    )


EVERY = [regression, wide_regression, like_sized_regression, two_classes, three_classes, hostile]


def data_of(page_text):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page_text, re.S)
    return json.loads(found[1])


# --- the text of the page -------------------------------------------------------------------------


@pytest.mark.parametrize("make", EVERY)
def test_page_refers_to_nothing_outside(make):
    text = render(make())
    assert text.startswith("<!DOCTYPE html>")
    assert not re.search(r"https?:|//[a-z]|url\(|@import|\bsrc=(?!x onerror)", text)
    assert len(text.encode()) < 450_000


def test_data_are_those_of_the_contents():
    contents = wide_regression()
    [part], data = contents.parts, data_of(render(contents))
    [drawn] = data["parts"]
    for name in ("betas", "risk"):
        np.testing.assert_allclose(drawn[name], getattr(part, name), rtol=1e-5)
    for name in ("mean", "offset", "height"):
        np.testing.assert_allclose(
            drawn["marginals"][name], getattr(part.marginals, name), rtol=1e-5
        )
    assert drawn["at"] == part.at
    assert drawn["coefficients"][79]["name"] == "column 79"
    assert drawn["coefficients"][79]["calibrated"]["low"] == pytest.approx(
        part.coefficients[79].calibrated.low, rel=1e-5
    )
    assert data["held_out"]["scores"][0] == list(contents.held_out.scores[0])


def test_numbers_that_are_not_finite_are_absent():
    contents = like_sized_regression()
    [part] = contents.parts
    part = replace(
        part,
        standard_error=np.nan,
        risk=np.where(part.betas == 0, np.inf, part.risk),
        marginals=replace(part.marginals, mean=np.full_like(part.marginals.mean, np.inf)),
    )
    text = render(replace(contents, parts=[part]))
    [drawn] = data_of(text)["parts"]
    assert drawn["standard_error"] is None
    assert drawn["risk"][0] is None and drawn["risk"][1] is not None
    assert set(np.ravel(drawn["marginals"]["mean"])) == {None}


def test_hostile_names_add_no_element():
    tame, wild = render(contents_of(*hostile().parts[:1])), render(hostile())
    for tag in ("<script", "</script", "<img", "<b>", "<!--", "</style"):
        assert wild.lower().count(tag) == tame.lower().count(tag), tag
    assert tame.count("<script") == 2
    assert "${x} $x $$ $title" in wild
    assert "\u2028" not in re.search(r'id="data">(.*?)</script>', wild, re.S)[1]
    assert data_of(wild)["parts"][0]["marginals"]["names"] == HOSTILE


def test_broken_encoding_of_a_name_can_be_stored():
    contents = replace(regression(), title="caf\udce9")
    assert b"caf?" in render(contents).encode("utf-8")


def test_many_points_are_thinned():
    contents = regression()
    [part] = contents.parts
    points = np.random.default_rng(3).normal(size=(9000, 2))
    part = replace(part, band=replace(part.band, points=points))
    [drawn] = data_of(render(replace(contents, parts=[part])))["parts"]
    assert len(drawn["band"]["points"]) == MOST_POINTS
    assert drawn["band"]["rows"] == 9000
    np.testing.assert_allclose(drawn["band"]["points"][-1], points[-1], rtol=1e-5)


def test_notices_have_a_box_only_if_there_are_any():
    # The sentence for readers without scripts is a notice too.
    assert render(regression()).count('class="notice"') == 1
    assert render(replace(regression(), notices=["Beware."])).count('class="notice"') == 2


# --- in a browser ---------------------------------------------------------------------------------


@pytest.fixture
def visit(browser, tmp_path):
    visits = []

    def open_(contents, **options):
        path = tmp_path / "report.html"
        text = contents if isinstance(contents, str) else render(contents)
        path.write_text(text, encoding="utf-8")
        visits.append(Visit(browser, path, **options))
        return visits[-1]

    yield open_
    for each in visits:
        each.close()


def coordinates(path):
    return np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", path), float)


def without_policy(text):
    bare = re.sub(r"<meta http-equiv=.Content-Security-Policy.*?>", "", text)
    assert len(bare) < len(text)
    return bare


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("width", [1200, 375])
def test_opens_quietly_and_fits(visit, make, width):
    seen = visit(make(), width=width)
    assert seen.said == []
    assert seen.asked == [seen.own]
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(seen.ridges()) == len(make().parts[0].marginals.names)
    # Each piece is there: risk curve, forest plot, reliability.
    for selector in (".curve", ".coefficients svg circle", "#reliability-chart circle"):
        assert seen.page.locator(selector).first.is_visible()


def test_policy_stops_requests_and_scripts(visit):
    picture = '<img src="http://example.invalid/a.png"></main>'
    text = render(regression()).replace("</main>", picture)
    run = """() => {
        const script = document.createElement("script");
        script.textContent = "window.intruder = true";
        document.body.append(script);
        return window.intruder === true;
    }"""
    guarded = visit(text)
    assert guarded.page.evaluate(run) is False
    assert guarded.failed == ["csp"]
    assert len(guarded.said) == 2 and all("Security Policy" in said for said in guarded.said)
    bare = visit(without_policy(text))
    assert bare.page.evaluate(run) is True
    assert bare.failed == ["net::ERR_INTERNET_DISCONNECTED"]
    assert bare.asked == [bare.own, "http://example.invalid/a.png"]


def test_slider_moves_marker_densities_and_band(visit):
    contents = regression()
    [part] = contents.parts
    seen = visit(contents)
    first = seen.state()
    assert seen.text("#readout-beta") == "β = 0.0448"
    assert seen.page.locator("#slider").input_value() == str(part.at)
    seen.slide(40)
    second = seen.state()
    assert all(a != b for a, b in zip(first, second, strict=True))
    assert float(second[0]) > float(first[0])
    assert seen.text("#readout-beta") == f"β = {part.betas[40]:.3g}"
    assert seen.text("#readout-risk") == f"risk {part.risk[40]:.3f}"
    assert f"{part.betas[40]:.3g}" in seen.attribute("#slider", "aria-valuetext")
    seen.slide(part.at)
    assert seen.state() == first


def test_keyboard_and_buttons_move_the_slider(visit):
    contents = two_classes()
    [part] = contents.parts
    seen = visit(contents)
    start = seen.state()
    seen.page.locator("#slider").focus()
    seen.page.keyboard.press("ArrowRight")
    assert seen.text("#readout-beta") == f"β = {part.betas[part.at + 1]:.3g}"
    assert seen.state()[0] != start[0]
    seen.page.keyboard.press("Home")
    assert seen.text("#readout-beta") == "β = 0"
    seen.page.get_by_role("button", name="Bayes").click()
    assert seen.text("#readout-beta") == "β = 1"
    assert seen.page.locator("#slider").input_value() == str(list(part.betas).index(1.0))
    seen.page.get_by_role("button", name="choice").click()
    assert seen.state() == start
    assert seen.page.get_by_label("Inverse temperature β").get_attribute("id") == "slider"


def test_hostile_names_stay_text(visit):
    seen = visit(hostile())
    assert seen.page.evaluate("document.scripts.length") == 2
    assert seen.page.evaluate("document.images.length") == 0
    assert seen.page.title() == HOSTILE[0]
    names = seen.page.locator(".coefficients tbody th").all_text_contents()
    assert names == [name or "(no name)" for name in HOSTILE]
    assert seen.text("pre") == HOSTILE[1] + HOSTILE[2]
    assert seen.page.locator(".scores tbody tr").text_content() == "".join(HOSTILE[:3])
    assert seen.page.locator("#part option").all_text_contents() == HOSTILE[:2]
    seen.page.locator("#part").select_option(index=1)
    seen.slide(3)
    assert seen.said == [] and seen.asked == [seen.own]


def test_hostile_names_would_be_noticed(visit):
    text = without_policy(render(regression())).replace("</main>", f"{HOSTILE[0]}</main>")
    assert visit(text).said == ["dialog: 1"]


def test_select_switches_between_classes(visit):
    contents = three_classes()
    seen = visit(contents)
    select = seen.page.locator("#part")
    assert select.locator("option").all_text_contents() == ["setosa", "versicolor", "virginica"]
    for part in contents.parts:
        select.select_option(label=part.name)
        low, high = part.beta_range
        assert seen.text("#tile-beta") == f"{part.betas[part.at]:.3g} {low:.3g} to {high:.3g}"
        assert seen.attribute("#slider", "max") == str(len(part.betas) - 1)
        assert seen.page.locator("#slider").input_value() == str(part.at)
        row = seen.page.locator(".coefficients tbody tr").nth(1)
        assert f"{part.coefficients[1].calibrated.mean:.3g}" in row.text_content()
        inside = 1.0 in part.betas
        assert seen.page.get_by_role("button", name="Bayes").is_visible() == inside
        assert (seen.page.locator("#risk-chart .bayes-fill").count() == 1) == inside
        assert (seen.page.locator("#ridge-chart .bayes").count() == 2) == inside
        assert seen.page.locator("#ridge-section .bayes-key").is_visible() == inside
    assert not visit(regression()).page.locator("#part").is_visible()


def test_numbers_shown_are_those_of_the_contents(visit):
    contents = wide_regression()
    [part] = contents.parts
    seen = visit(contents)
    assert seen.text("#tile-risk") == f"{part.risk[part.at]:.3f} ± 0.055"
    assert seen.text("#tile-bayes") == f"{part.bayes_risk:.3f}"
    assert seen.text("#tile-gain") == f"{part.gain:.3f} ± {part.gain_error:.3f}"
    assert seen.text("#tile-verdict") == "temper"
    names = [name.strip() for name in seen.page.locator(".tiles dt").all_text_contents()]
    assert names[:3] == ["Gain over Bayes", "Verdict", "β"]
    rows = seen.page.locator(".coefficients tbody tr").all()
    assert len(rows) == 80
    for row, coefficient in zip(rows[::13], part.coefficients[::13], strict=True):
        cells = row.locator("td").all_text_contents()
        for cell, expected in zip(cells, (coefficient.bayes, coefficient.calibrated), strict=False):
            numbers = [float(n) for n in re.findall(r"-?[\d.]+(?:e[-+]\d+)?", cell)]
            wanted = [expected.mean, expected.low, expected.high]
            assert numbers == pytest.approx(wanted, rel=5.1e-3)
    drawn = [
        r.locator("th, td").all_text_contents() for r in seen.page.locator(".scores tbody tr").all()
    ]
    assert drawn == [list(score) for score in contents.held_out.scores]
    assert seen.text("pre") == contents.command
    for paragraph in [*contents.words, *contents.notices, *sum(contents.settings, ())]:
        assert seen.page.get_by_text(paragraph, exact=True).first.is_visible()


def test_long_tables_collapse(visit):
    seen = visit(wide_regression())
    visible = [r.is_visible() for r in seen.page.locator(".coefficients tbody tr").all()]
    assert visible == [True] * 15 + [False] * 65
    seen.page.locator("summary").click()
    assert seen.page.locator(".coefficients tbody tr").last.is_visible()
    assert visit(like_sized_regression()).page.locator("details").count() == 0


def test_coefficients_that_are_not_drawn_are_said_to_be_elsewhere(visit):
    contents = wide_regression()
    seen = visit(contents)
    told = "Drawn are 12 of 80, the most standard deviations from zero; for more see the table"
    assert told in seen.text("#ridge-section .caption")
    assert "(--json" not in seen.text("#coefficients-caption")
    assert "'hue' with 'red'" in seen.text("#coefficients-caption")
    assert seen.text("#ridge-caption") != ""
    [part] = contents.parts
    more = visit(replace(contents, parts=[replace(part, n_coefficients=300)]))
    assert " of the 80 of 300 that are the most" in more.text("#coefficients-caption")
    assert "(--json prints all)" in more.text("#coefficients-caption")
    assert visit(regression()).text("#ridge-caption") == ""


def test_print_keeps_legends_and_all_coefficients(visit):
    page = visit(wide_regression()).page
    page.emulate_media(media="print")
    kept = "all => all.map(e => getComputedStyle(e, '::before').printColorAdjust)"
    assert set(page.eval_on_selector_all(".key", kept)) == {"exact"}
    assert page.locator("#moving .legend .choice-dot").is_visible()
    assert page.locator("#own-label").is_hidden()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".coefficients tbody tr").last.is_visible()


def test_betas_are_told_apart_on_the_scale_of_the_curve(visit):
    contents = like_sized_regression()
    [part] = contents.parts
    small = replace(part, betas=part.betas * 1e-7, grain=1e-10)
    page = visit(replace(contents, parts=[small])).page
    ticks = page.locator("#risk-chart text").all_text_contents()
    assert {"1e-9", "1e-8", "1e-7"} <= set(ticks)
    assert "β, on a logarithmic scale above 1e-10" in ticks
    drawn = page.locator("#risk-chart .curve").get_attribute("d")
    places = [float(x) for x in re.findall(r"[ML]([\d.]+) ", drawn)]
    gaps = np.diff(places) / (places[-1] - places[0])
    t = np.log1p(small.betas / small.grain)
    np.testing.assert_allclose(gaps, np.diff(t) / t[-1], atol=1e-3)
    linear = visit(replace(contents, parts=[replace(part, grain=1e3)])).page
    assert "β" in linear.locator("#risk-chart text").all_text_contents()


def test_errors_that_are_rounding_have_no_digits(visit):
    contents = regression()
    [part] = contents.parts
    seen = visit(replace(contents, parts=[replace(part, standard_error=1e-17)]))
    assert seen.text("#tile-risk") == f"{part.risk[part.at]:.4g} ± 1e-17"


def test_unknown_standard_error(visit):
    contents = regression()
    [part] = contents.parts
    known = visit(contents)
    assert known.page.locator("#error-bar").count() == 1
    assert known.page.get_by_text("± standard error").first.is_visible()
    seen = visit(replace(contents, parts=[replace(part, standard_error=np.nan)]))
    assert seen.said == []
    assert seen.page.locator("#error-bar").count() == 0
    assert not seen.page.get_by_text("± standard error").first.is_visible()
    assert seen.text("#tile-risk") == f"{part.risk[part.at]:.4g}"


def test_densities_are_as_wide_as_they_should_be(visit):
    half = np.sqrt(2 * np.log(2))  # width at half height of a standard Gaussian
    contents = contents_of(part_of(["only"], [0.0], [1.0], choice=1.0))
    [part] = contents.parts
    seen = visit(contents)
    # Around zero the picture ends 3.6 scales from the mean, on both sides.
    left, right = (
        float(seen.attribute("#ridge-chart > line.grid >> nth=-1", end)) for end in ("x1", "x2")
    )
    for index in (part.at, part.at + 15):
        seen.slide(index)
        x, y = coordinates(seen.ridges()[0]).T
        base, peak = float(seen.attribute("#ridge-chart > line.grid >> nth=-1", "y1")), y.min()
        level, top = (base + peak) / 2, int(np.argmin(y))
        sides = (x[top:], y[top:]), (x[top::-1], y[top::-1])  # y grows downwards, on both
        right_end, left_end = (np.interp(level, ys, xs) for xs, ys in sides)
        pixels = (right_end - left_end) / 2
        expected = half * part.marginals.offset[index, 0, -1] / 3.6 * (right - left) / 7.2
        assert pixels == pytest.approx(expected, rel=0.02)


def test_band_is_as_wide_as_it_should_be(visit):
    contents = regression()
    [part] = contents.parts
    seen = visit(contents)
    heights = []
    indices = [part.at, 30, 60]
    for index in indices:
        seen.slide(index)
        _, y = coordinates(seen.attribute("#band-area", "d")).T
        assert len(y) == 120
        heights.append(y[0] - y[-1])
    widths = (part.band.high - part.band.low)[indices, 0]
    np.testing.assert_allclose(np.array(heights) / heights[0], widths / widths[0], rtol=5e-3)


def test_steep_start_does_not_flatten_the_curve(visit):
    contents = like_sized_regression()
    [part] = contents.parts
    steep = replace(part, risk=np.where(part.betas < 0.01, 1e6, part.risk))
    seen = visit(replace(contents, parts=[steep]))
    choice = float(seen.attribute("#choice-dot", "cy"))
    bayes = float(seen.attribute("#risk-chart .bayes-fill", "y")) + 5
    assert choice - bayes > 40
    seen.slide(0)
    assert 0 < float(seen.attribute("#marker", "cy")) < choice


@pytest.mark.parametrize(("width", "factor"), [(1200, 1), (375, 1), (1200, 1e99), (1200, 1e-9)])
def test_labels_of_the_risk_curve_do_not_collide(visit, width, factor):
    contents = like_sized_regression()
    [part] = contents.parts
    choices = [] if factor != 1 else part.choices
    other = replace(part, betas=part.betas * factor, choices=choices)
    seen = visit(replace(contents, parts=[other]), width=width)
    boxes = seen.page.eval_on_selector_all(
        "#risk-chart text",
        "all => all.map(e => [e.textContent, e.getBBox()]).map(([t, b]) => "
        "[t, b.x, b.y + 2, b.x + b.width, b.y + b.height - 2])",
    )
    shown = {"k-fold", "leave-one-out", "bootstrap"} if choices else set()
    assert shown <= {box[0] for box in boxes}
    assert len(boxes) > len(choices) + 5
    for i, (one, left, top, right, bottom) in enumerate(boxes):
        assert left >= -1 and right <= width
        for other, left2, top2, right2, bottom2 in boxes[:i]:
            apart = right < left2 or right2 < left or bottom < top2 or bottom2 < top
            assert apart, (one, other)


def test_scales_of_the_densities_follow_the_switch(visit):
    different, alike = visit(wide_regression()), visit(like_sized_regression())
    assert different.page.get_by_label("each on its own scale").is_checked()
    assert not alike.page.get_by_label("each on its own scale").is_checked()
    before = alike.ridges()
    alike.page.get_by_label("each on its own scale").check()
    after = alike.ridges()
    assert all(a != b for a, b in zip(before, after, strict=True))
    assert all(
        np.ptp(coordinates(b)[:, 0]) > np.ptp(coordinates(a)[:, 0])
        for a, b in zip(before, after, strict=True)
    )


def test_long_names_that_differ_at_their_ends_are_told_apart(visit):
    names = [f"a name far too long for the place that it has, number {j}" for j in range(9)]
    seen = visit(contents_of(part_of(names, np.zeros(9), np.ones(9))), width=375)
    labels = seen.page.eval_on_selector_all(
        "#ridge-chart .name", "all => all.map(e => e.firstChild.data)"
    )
    assert len(set(labels)) == 9
    assert all("…" in label and len(label) < 20 for label in labels)
    tooltips = seen.page.locator("#ridge-chart .name title").all_text_contents()
    assert tooltips == names


def test_a_flat_prior_and_missing_numbers_are_drawn(visit):
    contents = regression()
    [part] = contents.parts
    flat = part.marginals.offset.copy()
    flat[0] *= np.inf
    band = replace(part.band, low=part.band.low.copy(), high=part.band.high.copy())
    band.low[0], band.high[0] = -np.inf, np.inf
    risk = np.where(part.betas == 0, np.nan, part.risk)
    empty = ReliabilityCurve(np.array([0.5, 0.9]), np.array([np.nan, 0.8]), np.array([np.nan, 0.1]))
    part = replace(part, risk=risk, band=band, marginals=replace(part.marginals, offset=flat))
    held_out = replace(contents.held_out, calibrated=empty)
    seen = visit(replace(contents, parts=[part], held_out=held_out))
    seen.slide(0)
    assert seen.said == []
    assert seen.text("#readout-risk") == "risk –"
    assert all(np.ptp(coordinates(d)[:, 1]) == 0 for d in seen.ridges())
    assert seen.page.locator("#reliability-chart circle").count() == 1
    assert (
        "NaN" not in seen.page.content()
        and "Infinity" not in seen.page.locator("main").inner_html()
    )


def test_a_known_coefficient_is_a_line(visit):
    contents = regression()
    [part] = contents.parts
    height = np.full_like(part.marginals.height, np.nan)
    known = replace(part.marginals, offset=0 * part.marginals.offset, height=height)
    seen = visit(replace(contents, parts=[replace(part, marginals=known)]))
    assert seen.said == []
    assert all(np.ptp(coordinates(d)[:, 0]) == 0 for d in seen.ridges())


def test_the_range_is_a_band_and_a_tile(visit):
    contents = regression()
    [part] = contents.parts
    seen = visit(contents)
    assert seen.text("#tile-beta") == "0.0448 0.0224 to 0.179"
    assert seen.text("#range-meaning") == "not told apart by the data"
    choice, low = (float(seen.attribute(*each)) for each in (("#choice-dot", "cx"),
                                                             ("#beta-range", "x")))  # fmt: skip
    assert low < choice < low + float(seen.attribute("#beta-range", "width"))
    given = visit(replace(contents, parts=[replace(part, beta_range=None)]))
    assert given.text("#tile-beta") == "0.0448"
    assert given.page.locator("#beta-range").count() == 0
    assert not given.page.locator(".range-key").is_visible()


def mixed(part, *weights):
    """The part with a mixture as its choice, of these pairs of betas and weights."""
    words = ", ".join(f"{100 * weight:.0f} % at {beta:g}" for beta, weight in weights)
    own = StrategyChoice("stacking", part.betas[part.at], True, list(weights))
    others = [replace(each, own=False) for each in part.choices]
    risk = part.risk[part.at] - 0.05
    return replace(part, mixed=words, choice_risk=risk, choices=[own, *others])


def test_a_mixture_stands_at_the_place_of_the_choice(visit):
    contents = regression()
    [part] = contents.parts
    part = mixed(part, (0.01, 0.25), (1.0, 0.75))
    seen = visit(replace(contents, parts=[part], choice_name="mixture over β"))
    assert seen.text("#readout-beta") == "β mixed"
    assert seen.text("#readout-risk") == f"risk {part.choice_risk:.3f} (choice)"
    assert seen.text("#tile-beta") == "mixed 25 % at 0.01, 75 % at 1"
    assert seen.text("#tile-risk") == f"{part.choice_risk:.3f} ± 0.055"
    heads = seen.page.locator(".coefficients thead th").all_text_contents()
    assert heads[:3] == ["Coefficient", "Bayes", "Mixture over β"]
    assert seen.page.locator(".scores thead th").all_text_contents()[2] == "Mixture over β"
    seen.slide(part.at + 1)
    assert seen.text("#readout-beta") == f"β = {part.betas[part.at + 1]:.3g}"
    assert seen.text("#readout-risk") == f"risk {part.risk[part.at + 1]:.3f}"


@pytest.mark.parametrize("width", [1200, 375])
def test_a_mixture_has_a_dot_for_each_beta_as_large_as_its_weight(visit, width):
    contents = regression()
    [part] = contents.parts
    seen = visit(replace(contents, parts=[mixed(part, (0.01, 0.25), (1.0, 0.75))]), width=width)
    dots = seen.page.eval_on_selector_all(
        "#risk-chart circle.choice-fill:not(#choice-dot)",
        "all => all.map((e) => [+e.getAttribute('cx'), +e.getAttribute('r')])",
    )
    (left, small), (right, large) = dots
    assert (large / small) ** 2 == pytest.approx(3)
    bayes = float(seen.attribute("#risk-chart .bayes-fill", "x")) + 5
    assert left < right == pytest.approx(bayes)
    assert seen.page.locator("#risk-chart").get_by_text("mixed", exact=True).count() == 1
    assert seen.page.locator("#mixed-caption").is_visible()
    assert not visit(contents).page.locator("#mixed-caption").is_visible()


def test_bayes_at_the_median_of_a_mixture_has_a_place_of_its_own(visit):
    part = part_of(["intercept", "bmi"], [1.0, 0.8], [0.03, 0.02], choice=1.0)
    betas = np.insert(part.betas, part.at, 1.0)
    twice = [part.at if k == part.at else k - (k > part.at) for k in range(len(betas))]
    marginals = part.marginals
    marginals = replace(
        marginals,
        mean=marginals.mean[twice],
        offset=marginals.offset[twice],
        height=marginals.height[twice],
    )
    part = replace(part, betas=betas, risk=part.risk[twice], marginals=marginals)
    seen = visit(contents_of(mixed(part, (0.1, 0.5), (10.0, 0.5))))
    assert seen.text("#readout-beta") == "β mixed"
    seen.page.get_by_role("button", name="Bayes").click()
    assert seen.text("#readout-beta") == "β = 1"
    assert seen.text("#readout-risk").endswith("(Bayes)")


def test_without_a_verdict_there_is_no_tile_for_it(visit):
    contents = regression()
    [part] = contents.parts
    seen = visit(replace(contents, parts=[replace(part, verdict="")]))
    assert not seen.page.locator("#verdict").is_visible()
    assert seen.page.locator("#tile-gain").is_visible()


def test_without_bayes_there_is_no_gain(visit):
    contents = regression()
    [part] = contents.parts
    losses = replace(
        contents.held_out, kind="losses", bayes=None, calibrated=None, scores=[("loss", "1.0")]
    )
    nothing = [replace(each, bayes=None) for each in part.coefficients]
    part = replace(part, verdict="", coefficients=nothing)
    seen = visit(replace(contents, parts=[part], bayes=False, held_out=losses))
    assert seen.said == []
    names = seen.page.locator(".tiles dt").all_text_contents()
    assert [name.strip() for name in names] == ["β", "Its estimated risk"]


def test_reads_without_scripts(visit):
    seen = visit(regression(), scripts=False)
    assert seen.page.locator("noscript p").is_visible()
    assert seen.page.get_by_text(regression().words[0]).is_visible()
    assert visit(regression()).page.locator("noscript p").count() == 0


def test_pictures_follow_the_width_of_the_window(visit):
    seen = visit(regression())
    before = seen.attribute("#risk-chart", "viewBox")
    seen.slide(20)
    seen.page.set_viewport_size({"width": 500, "height": 900})
    seen.page.wait_for_function(
        "old => document.getElementById('risk-chart').getAttribute('viewBox') !== old", arg=before
    )
    assert seen.text("#readout-beta") == f"β = {regression().parts[0].betas[20]:.3g}"
