"""Hostile tables for the command and hostile blocks for streaming, each from one number.

The command answers with a finite beta, or with one line about bad input.  Blocks give what all rows
at once give, wherever they are cut.  A page shows cells and names as text, and nothing else.
"""

from __future__ import annotations

import contextlib
import csv
import html
import io
import json
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import PredefinedSplit

from temperance import calibrate, models, strategies
from temperance.app.cli import main
from temperance.messages import TemperanceWarning
from temperance.streaming import calibrate_blocks, fold_numbers

Array = NDArray[np.float64]
Draw = np.random.Generator

BAD_INPUT = 2
MARKUP = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><b>",
    "[bold]x[/bold]",
    "$title",
    "\x1b[31mred",
    "a\nb",
    "&lt;i&gt;<i>",
    "\u2028<u>",
    "'; DROP TABLE x; --<s>",
]
CELLS = [
    "",
    "NA",
    "nan",
    "inf",
    "-inf",
    "1e309",
    "1e308",
    "-1e300",
    "1e200",
    "1e-200",
    "5e-324",
    "-0",
    "0x1f",
    "1_000",
    "1,5",
    "1 000",
    "true",
    "None",
    "2020-01-31",
    "12:30",
    "50%",
    "1" * 400,
    "-" + "9" * 310,
    "9007199254740993",
    "x" * 3000,
    "Größe",
    " 7 ",
    '"',
    ";",
    "=1+1",
    *MARKUP,
]
NAMES = ["x", "X", "y", "target", "", "intercept", "Unnamed: 0", "1", "nan", "a=b", "n" * 300]
FORMATS: list[Callable[[Draw, int], list[str]]] = [
    lambda rng, n: [f"{v:.6g}" for v in rng.standard_normal(n)],
    lambda rng, n: [f"{v:.17g}" for v in rng.standard_normal(n) * 10.0 ** rng.uniform(-300, 299)],
    lambda rng, n: [f"{v:.17g}" for v in 10.0 ** rng.uniform(-320, 300, n)],
    lambda rng, n: [str(v) for v in rng.integers(0, 3, n)],
    lambda rng, n: [str(v) for v in rng.permutation(n)],
    lambda rng, n: [str(2**53 + int(v)) for v in rng.integers(0, 9, n)],
    lambda rng, n: [str(rng.integers(-5, 5))] * n,
    lambda rng, n: list(rng.choice(["yes", "no"], n)),
    lambda rng, n: list(rng.choice(["True", "False"], n)),
    lambda rng, n: list(rng.choice(MARKUP, n)),
    lambda rng, n: list(rng.choice(["red", "green", "blue"], n)),
    lambda rng, n: [f"1e8{v:04d}" if v < 0 else f"{1e8 + 1e-6 * v:.10f}" for v in range(n)],
    lambda rng, n: [""] * n,
    lambda rng, n: [f"20{v:02d}-0{v % 9 + 1}-11T0{v % 7}:30" for v in rng.integers(0, 99, n)],
]


def run(seed: int) -> str | None:
    """Try one case; return what is wrong, in one line, or nothing."""
    kind, rng = begin(seed)
    try:
        failure = {"command": command, "blocks": blocks, "page": page}[kind](rng)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    return failure and " ".join(f"{kind}: {failure} | seed {seed}".split())


def begin(seed: int) -> tuple[str, Draw]:
    """Return what kind of case it is, and where its numbers come from."""
    rng = np.random.default_rng(seed)
    return str(rng.choice(["command", "blocks", "page"], p=[0.6, 0.35, 0.05])), rng


# --- the command ----------------------------------------------------------------------------------


def command(rng: Draw) -> str | None:
    """Run it on a table that may be anything, with options that may be anything."""
    names, rows = cells(rng)
    name, content = stored(rng, names, rows)
    words = ["calibrate", name, "--json", *options(rng, names)]
    code, out, err, made = ran(words, {name: content})
    if code == 0 and "saved.json" in made:
        return _wrong(code, out, err) or _forecasts(name, content, made["saved.json"])
    return _wrong(code, out, err)


def _forecasts(name: str, content: bytes, saved: bytes) -> str | None:
    """Forecast the rows of the table by the choice that was saved."""
    words = ["predict", "saved.json", name, "--skip-unknown"]
    code, out, err, _ = ran(words, {name: content, "saved.json": saved})
    if code == BAD_INPUT:
        return _wrong(code, out, err)
    rows = list(csv.reader(io.StringIO(out)))
    whole = code == 0 and len(rows) > 1 and all(len(row) == len(rows[0]) for row in rows)
    return None if whole else f"forecasts: exit code {code}: {err.strip()[-300:]}"


def page(rng: Draw) -> str | None:
    """Write a page of a small table whose names and cells look like markup."""
    n = int(rng.integers(12, 25))
    names = [str(each) for each in rng.choice(MARKUP, 3, replace=False)]
    values = rng.standard_normal(n)
    columns = [
        [f"{v:.5g}" for v in values],
        list(rng.choice(rng.choice(MARKUP, 2, replace=False), n)),
        [f"{v + e:.5g}" for v, e in zip(values, rng.standard_normal(n), strict=True)],
    ]
    content = _csv(names, list(zip(*columns, strict=True)))
    words = ["calibrate", "data.csv", "--json", "--target", names[-1], "--report", "page.html"]
    code, out, err, made = ran(words, {"data.csv": content})
    if code != 0:
        return _wrong(code, out, err)
    text = made["page.html"].decode()
    for each in MARKUP:
        if "<" in each and text.count(each) > _plain_page().count(each):
            return f"a cell or name is in the page as it is: {each!r}"
    if html.escape(names[-1]) not in text:
        return f"the target is not on the page: {names[-1]!r}"
    return _wrong(code, out, err)


@cache
def _plain_page() -> str:
    """Return the page of a table without markup."""
    content = _csv("abc", [[k, (7 * k) % 5, 3 * k + k % 4] for k in range(12)])
    words = ["calibrate", "data.csv", "--target", "c", "--report", "page.html"]
    return ran(words, {"data.csv": content})[3]["page.html"].decode()


def cells(rng: Draw) -> tuple[list[str], list[list[str]]]:
    """Draw names and rows of cells."""
    n = int(rng.choice([0, 1, 2, 9, 10, 13, 40], p=[0.03, 0.03, 0.04, 0.05, 0.25, 0.45, 0.15]))
    d = int(rng.choice([1, 2, 3, 5, 30], p=[0.04, 0.3, 0.36, 0.2, 0.1]))
    kinds = rng.choice(len(FORMATS), d, p=_leaning(len(FORMATS), 0.5))
    columns = [FORMATS[kind](rng, n) for kind in kinds]
    if n and rng.random() < 0.3:
        for _ in range(int(rng.integers(1, 4))):
            columns[rng.integers(d)][rng.integers(n)] = str(rng.choice(CELLS))
    names = [f"c{j}" for j in range(d)]
    if rng.random() < 0.3:
        names = [str(rng.choice([*NAMES, *MARKUP])) if rng.random() < 0.5 else s for s in names]
    rows = [list(row) for row in zip(*columns, strict=True)]
    if rows and rng.random() < 0.2:
        rows = [rows[k] for k in rng.integers(0, max(1, n // 3), n)]  # copies
    if rows and rng.random() < 0.05:
        rows[-1] = rows[-1][:-1]
    return names, rows


def _leaning(count: int, first: float) -> Array:
    """Return probabilities that give the first its share, and the others the same."""
    return np.array([first] + [(1 - first) / (count - 1)] * (count - 1))


def stored(rng: Draw, names: list[str], rows: list[list[str]]) -> tuple[str, bytes]:
    """Return a file of the table: a name and bytes, perhaps damaged."""
    whole = all(len(row) == len(names) for row in rows)
    if rng.random() < 0.25 and len(set(names)) == len(names) and whole:
        name, content = "data.parquet", _parquet(rng, names, rows)
    else:
        separator = str(rng.choice([",", ";", "\t"], p=[0.7, 0.2, 0.1]))
        end = str(rng.choice(["\n", "\r\n", "\r"], p=[0.8, 0.15, 0.05]))
        name, content = "data.csv", _csv(names, rows, separator, end)
    return name, _damaged(rng, content) if rng.random() < 0.15 else content


def _csv(names: Any, rows: Any, separator: str = ",", end: str = "\n") -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator=end)
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


def _parquet(rng: Draw, names: list[str], rows: list[list[str]]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    columns = [[row[j] for row in rows] for j in range(len(names))]
    stored = [_as_numbers(column) if rng.random() < 0.8 else column for column in columns]
    content = io.BytesIO()
    parquet.write_table(pyarrow.table(dict(zip(names, stored, strict=True))), content)
    return content.getvalue()


def _as_numbers(column: list[str]) -> Any:
    try:
        return [float(cell) if cell else None for cell in column]
    except ValueError:
        return column


def _damaged(rng: Draw, content: bytes) -> bytes:
    """Cut a file, change bytes of it, or encode it in another way."""
    how = rng.integers(4)
    if how == 0:
        return content[: rng.integers(len(content) + 1)]
    if how == 1:
        broken = bytearray(content)
        for at in rng.integers(0, len(content), 3):
            broken[at] = rng.integers(256)
        return bytes(broken)
    if how == 2:
        return content.decode("latin-1").encode("utf-16")
    return content + bytes(rng.integers(0, 256, 20, dtype=np.uint8))


def options(rng: Draw, names: list[str]) -> list[str]:
    """Draw options, most of them sensible."""
    words = ["--target", names[-1] if rng.random() < 0.95 else "nowhere"]
    choices: list[tuple[float, Callable[[], list[str]]]] = [
        (0.3, lambda: ["--drop-missing"]),
        (0.1, lambda: ["--drop", str(rng.choice(names))]),
        (0.1, lambda: ["--weights", str(rng.choice(names))]),
        (0.1, lambda: ["--model", str(rng.choice(["linear", "polynomial"]))]),
        (0.1, lambda: ["--noise-variance", f"{10.0 ** rng.uniform(-8, 8):.3g}"]),
        (0.05, lambda: ["--prior-scale", f"{10.0 ** rng.uniform(-8, 8):.3g}"]),
        (0.1, lambda: ["--no-standardize"]),
        (0.1, lambda: ["--no-intercept"]),
        (0.2, lambda: ["--for", "draws"]),
        (0.3, lambda: ["--dates-as-days"]),
        (0.1, lambda: ["--save", "saved.json"]),
        (0.1, lambda: ["--transfer", "alpha"]),
        (0.1, lambda: ["--strategy", str(rng.choice(["naive", "bayes", "sample-splitting"]))]),
        (0.1, lambda: ["--posterior", str(rng.choice(["laplace", "mean-field"]))]),
        (0.05, lambda: ["--report", str(rng.choice(["page.html", "no/page", ".", "x" * 300]))]),
        (0.05, lambda: ["--bounds", "0.1", "0.5"]),
    ]
    for chance, draw in choices:
        if rng.random() < chance:
            words += draw()
    return words


def ran(words: list[str], files: dict[str, bytes]) -> tuple[Any, str, str, dict[str, bytes]]:
    """Run the command in a folder of its own; return code, output, errors and what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            for name, content in files.items():
                Path(name).write_bytes(content)
            with (
                mock.patch.object(sys, "argv", ["temperance", *words]),
                mock.patch.dict(os.environ, {"COLUMNS": "500"}),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("error")
                code = _exit_code()
            made = {each.name: each.read_bytes() for each in Path().iterdir() if each.is_file()}
        finally:
            os.chdir(before)
    return code, out.getvalue(), err.getvalue(), made


def _exit_code() -> Any:
    try:
        main()
    except SystemExit as left:
        return left.code
    return "none"


def _wrong(code: Any, out: str, err: str) -> str | None:
    """Return what the command should not have done."""
    if code == BAD_INPUT:
        line = err.startswith("temperance: ") and err.count("\n") == 1 and err.endswith("\n")
        return None if line and not out else f"bad input without its one line: {err!r} {out!r}"
    if code != 0:
        return f"exit code {code}: {err.strip()[-300:]}"
    if err:
        return f"words on stderr in spite of success: {err.strip()[:300]}"
    record = json.loads(out)
    betas = [each["beta"] for each in record["results"]]
    if not all(isinstance(beta, float | int) and math.isfinite(beta) for beta in betas):
        return f"beta is not finite: {betas}"
    strange = [each for each in record["warnings"] if "encountered in" in each]
    return f"a warning of numpy: {strange[0]}" if strange else None


# --- blocks ---------------------------------------------------------------------------------------


def blocks(rng: Draw) -> str | None:
    """Calibrate on all rows, and on blocks cut anywhere, some of them empty."""
    X, y, weights = _rows(rng)
    n_folds = int(rng.integers(2, 11))
    seed = int(rng.integers(100))
    variance, spread = 10.0 ** rng.uniform(-3, 3, 2)
    model: Any = models.GaussianLinear(variance, 0.1, spread)
    if rng.random() < 0.5:
        model = models.NormalInverseGammaLinear(prior_mean=0.1, prior_cov=spread)
    folds = strategies.FromSplitter(
        PredefinedSplit(fold_numbers(np.count_nonzero(weights), n_folds, seed))
    )
    kept = weights > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TemperanceWarning)
        warnings.simplefilter("error", RuntimeWarning)
        whole = _calibrated(
            lambda: calibrate(model, X[kept], y[kept], folds, weights=weights[kept], risk="gibbs")
        )
        parts = [
            _calibrated(
                lambda: calibrate_blocks(
                    model,
                    _cut(rng, X, y, weights),
                    strategies.KFold(n_folds),
                    risk="gibbs",
                    seed=seed,
                )
            )
            for _ in range(2)
        ]
    return _disagreement([whole, *parts])


def _rows(rng: Draw) -> tuple[Array, Array, Array]:
    n = int(rng.choice([1, 5, 11, 20, 60]))
    d = int(rng.choice([1, 2, 5, 30]))
    X = rng.standard_normal((n, d))
    if rng.random() < 0.5:
        X *= 10.0 ** rng.uniform(-4, 4, d)
    if rng.random() < 0.15:
        X[:, rng.integers(d)] = rng.choice([0.0, 1.0])
    if rng.random() < 0.1:
        X[:, -1] = X[:, 0]
    if rng.random() < 0.1:
        X *= 10.0 ** rng.choice([-200.0, -100.0, 200.0, 300.0])
    if rng.random() < 0.2:
        X = X[rng.integers(0, n, n)]
    y = X[:, 0] / np.abs(X).max(initial=1e-300) + rng.standard_normal(n)
    if rng.random() < 0.1:
        y *= 10.0 ** rng.choice([-200.0, -100.0, 200.0])
    weights = np.ones(n)
    if rng.random() < 0.4:
        weights = rng.choice([0.0, 0.5, 1.0, 3.0], n)
    return X, y, weights


def _cut(rng: Draw, X: Array, y: Array, weights: Array) -> Any:
    """Cut rows into blocks; without weights where they are all one."""
    ends = np.sort(rng.integers(0, len(y) + 1, rng.integers(0, 6)))
    parts = (X, y) if np.all(weights == 1) else (X, y, weights)
    return zip(*(np.split(part, ends) for part in parts), strict=True)


def _calibrated(work: Callable[[], Any]) -> Any:
    """Return a calibration, or the line that says why there is none."""
    try:
        return work()
    except (ValueError, RuntimeWarning) as error:
        return str(error)


def _disagreement(found: list[Any]) -> str | None:
    whole, *parts = found
    lines = [each for each in found if isinstance(each, str)]
    if any("\n" in line for line in lines):
        return f"several lines: {lines}"
    if isinstance(parts[0], str) or isinstance(parts[1], str):
        same = isinstance(parts[0], str) and isinstance(parts[1], str)
        return None if same else f"one cut is refused, another is not: {lines}"
    if isinstance(whole, str):
        return f"blocks are taken and all rows are not: {whole}"
    betas = np.array([1e-3, 0.1, 1.0, 3.0])
    risk = whole.curve(betas)
    for part in parts:
        if not np.allclose(part.curve(betas), risk, rtol=1e-9, atol=0.0):
            return f"risks differ: {part.curve(betas)} instead of {risk}"
        if not np.isclose(part.risk, whole.risk, rtol=1e-9, atol=0.0):
            return f"least risks differ: {part.risk} at {part.beta}, {whole.risk} at {whole.beta}"
        one, other = (each.posterior_at(1.0) for each in (part, whole))
        error = np.abs(one.mean - other.mean) / np.sqrt(np.diagonal(other.cov))
        if not np.all(error < 1e-6):
            return f"posterior means differ by {error.max()} standard deviations"
    return None
