"""A report as one self-contained HTML page: no network, no other files."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import math
import re
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from temperance.app.report.contents import Band, Contents, HeldOutSummary

# More points would only darken the plot and enlarge the page.
MOST_POINTS = 2000


def render(contents: Contents) -> str:
    """Return a report as HTML.

    A content security policy with hashes forbids all requests, and all scripts and styles but the
    page's own.  Text from outside is escaped in the HTML; the script gets it as JSON and shows it
    as text only.

    Parameters
    ----------
    contents : Contents
        Numbers and text to show.  Numbers that are not finite count as missing.

    Returns
    -------
    str
        The page, to be stored as UTF-8.
    """
    style, script = _asset("page.css"), _asset("drawing.js") + _asset("page.js")
    # One pass over the template: a "$name" inside a value is not replaced.
    page = _asset("page.html")
    if not contents.bayes:
        page = re.sub("<!--bayes-->.*?<!--/bayes-->", "", page, flags=re.DOTALL)
    return Template(page).substitute(
        policy=_policy(style, script),
        style=style,
        script=script,
        data=_data(contents),
        title=_escape(contents.title),
        notices=_notices(contents.notices),
        words="\n".join(f"<p>{_escape(paragraph)}</p>" for paragraph in contents.words),
        held_out=_escape(_held_out(contents.held_out)),
        choice=_escape(contents.choice_name),
        scores=_scores(contents.held_out.scores, contents.choice_name),
        ranking=_ranking(contents.ranking, contents.bayes),
        settings=_settings(contents.settings),
        command=_escape(contents.command),
    )


def _asset(name: str) -> str:
    return files("temperance.app.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return a content security policy that allows only this style and this script."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _escape(text: str) -> str:
    # Lone surrogates, as in names from badly encoded files, cannot be stored as UTF-8.
    return html.escape(text.encode("utf-8", "replace").decode())


def _data(contents: Contents) -> str:
    """Return numbers and names for the script, as JSON that cannot end its element."""
    parts = [dataclasses.replace(part, band=_thinned(part.band)) for part in contents.parts]
    plain = _plain(
        {
            "risk_name": contents.risk_name,
            "choice_name": contents.choice_name,
            "reading": contents.reading,
            "widths": contents.widths,
            "band": contents.band,
            "bayes": contents.bayes,
            "parts": parts,
            "held_out": contents.held_out,
        }
    )
    for band, part in zip((part.band for part in contents.parts), plain["parts"], strict=True):
        if band is not None:
            part["band"]["rows"] = len(band.points)
    text = json.dumps(plain, allow_nan=False, separators=(",", ":"))
    # ASCII already escapes the line separators U+2028 and U+2029.
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _thinned(band: Band | None) -> Band | None:
    """Return the band with at most ``MOST_POINTS`` points, evenly over the rows."""
    if band is None or len(band.points) <= MOST_POINTS:
        return band
    rows = np.linspace(0, len(band.points) - 1, MOST_POINTS).round().astype(int)
    return dataclasses.replace(band, points=band.points[rows])


def _plain(value: Any) -> Any:
    """Return dataclasses and arrays as JSON values; numbers with six digits, or None."""
    if dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def _notices(notices: list[str]) -> str:
    if not notices:
        return ""
    if len(notices) == 1:
        return f'<p class="notice" role="note">{_escape(notices[0])}</p>'
    items = "".join(f"<li>{_escape(notice)}</li>" for notice in notices)
    return f'<ul class="notice">{items}</ul>'


def _held_out(held_out: HeldOutSummary) -> str:
    rows = "1 row" if held_out.rows == 1 else f"{held_out.rows} rows"
    if held_out.kind == "losses":
        return f"Fitted values for {rows} that did not train the model, with ± one standard error."
    if held_out.kind == "intervals":
        what = "how often new responses fell inside central intervals of each level"
    else:
        what = "how often a class came among rows that were given similar probabilities"
    return (
        f"Forecasts for {rows} that did not train the model: {what}, with ± one standard error. "
        "On the diagonal, forecasts and frequencies agree."
    )


def _scores(scores: list[tuple[str, ...]], choice: str) -> str:
    if not scores:
        return ""
    body = "".join(
        f'<tr><th scope="row">{_escape(measure)}</th>'
        f"{''.join(f'<td>{_escape(each)}</td>' for each in bayes)}"
        f'<td class="calibrated">{_escape(calibrated)}</td></tr>'
        for measure, *bayes, calibrated in scores
    )
    names = ("Measure", *(["Bayes"] if len(scores[0]) > 2 else []), choice[:1].upper() + choice[1:])
    head = "".join(f'<th scope="col">{_escape(name)}</th>' for name in names)
    return f'<table class="scores"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _ranking(ranking: list[tuple[str, ...]], bayes: bool) -> str:
    if not ranking:
        return ""
    headings, *rows = ranking
    head = "".join(f'<th scope="col">{_escape(name)}</th>' for name in headings)
    body = "".join(
        f"<tr>{''.join(f'<td>{_escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    measure = "gain over Bayes" if bayes else "loss"
    return (
        f"<h3>All strategies, ranked by their {measure} on held-out rows</h3>"
        f'<table class="ranking"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


def _settings(settings: list[tuple[str, str]]) -> str:
    body = "".join(
        f'<tr><th scope="row">{_escape(name)}</th><td>{_escape(value)}</td></tr>'
        for name, value in settings
    )
    return f'<table class="settings"><tbody>{body}</tbody></table>'
