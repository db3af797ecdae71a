"""A report as one HTML page that needs nothing but itself: no network, no other file."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import math
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from temperance.app.report.contents import Band, Contents, HeldOut

# More points than this only darken the picture and swell the page.
MOST_POINTS = 2000


def render(contents: Contents) -> str:
    """Write a report as HTML.

    The page forbids itself every request, and every script and style but its own two, by a content
    security policy with their hashes.  Words and names from outside enter the HTML escaped, and the
    script as JSON that it only ever shows as text.

    Parameters
    ----------
    contents : Contents
        The numbers and words to show.  Numbers that are not finite count as absent.

    Returns
    -------
    str
        The page, to be stored as UTF-8.
    """
    style, script = _asset("page.css"), _asset("drawing.js") + _asset("page.js")
    # One pass over the template: a "$name" inside a value stays as it is.
    return Template(_asset("page.html")).substitute(
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
        ranking=_ranking(contents.ranking),
        settings=_settings(contents.settings),
        command=_escape(contents.command),
    )


def _asset(name: str) -> str:
    return files("temperance.app.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Content security policy under which only these two texts are applied and run."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _escape(text: str) -> str:
    # Lone surrogates, as in names read from badly encoded files, cannot be stored as UTF-8.
    return html.escape(text.encode("utf-8", "replace").decode())


def _data(contents: Contents) -> str:
    """Numbers and names for the script, as JSON that cannot end the element around it."""
    parts = [dataclasses.replace(part, band=_thinned(part.band)) for part in contents.parts]
    plain = _plain(
        {
            "risk_name": contents.risk_name,
            "choice_name": contents.choice_name,
            "reading": contents.reading,
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
    """Leave at most so many points as a picture can show, evenly over the rows."""
    if band is None or len(band.points) <= MOST_POINTS:
        return band
    rows = np.linspace(0, len(band.points) - 1, MOST_POINTS).round().astype(int)
    return dataclasses.replace(band, points=band.points[rows])


def _plain(value: Any) -> Any:
    """Turn dataclasses and arrays into what JSON knows; numbers to six digits or None."""
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


def _held_out(held_out: HeldOut) -> str:
    if held_out.kind == "intervals":
        told = "how often new responses fell inside central intervals of each level"
    else:
        told = "how often a class came among rows that were given similar probabilities"
    rows = "1 row" if held_out.rows == 1 else f"{held_out.rows} rows"
    return (
        f"Forecasts for {rows} that had no part in them: {told}, with ± one standard error. "
        "On the diagonal, what was promised is what happened."
    )


def _scores(scores: list[tuple[str, str, str]], choice: str) -> str:
    if not scores:
        return ""
    body = "".join(
        f'<tr><th scope="row">{_escape(measure)}</th><td>{_escape(bayes)}</td>'
        f'<td class="calibrated">{_escape(calibrated)}</td></tr>'
        for measure, bayes, calibrated in scores
    )
    names = ("Measure", "Bayes", choice[:1].upper() + choice[1:])
    head = "".join(f'<th scope="col">{_escape(name)}</th>' for name in names)
    return f'<table class="scores"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _ranking(ranking: list[tuple[str, ...]]) -> str:
    if not ranking:
        return ""
    headings, *rows = ranking
    head = "".join(f'<th scope="col">{_escape(name)}</th>' for name in headings)
    body = "".join(
        f"<tr>{''.join(f'<td>{_escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return (
        "<h3>All strategies, ranked by their gain over Bayes on rows held out</h3>"
        f'<table class="ranking"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


def _settings(settings: list[tuple[str, str]]) -> str:
    body = "".join(
        f'<tr><th scope="row">{_escape(name)}</th><td>{_escape(value)}</td></tr>'
        for name, value in settings
    )
    return f'<table class="settings"><tbody>{body}</tbody></table>'
