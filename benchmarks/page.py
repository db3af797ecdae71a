"""The page: tables of stored results, in words where an aim was missed."""

from __future__ import annotations

from benchmarks.growth import THEORY, slope
from benchmarks.record import Record, Results

INTRODUCTION = """\
# Performance

What a calibration costs beside what a user would do instead, measured in one run.
The numbers are ratios of best processor times of calls that took turns, all with one thread of
BLAS: on another machine the times differ, the ratios much less.

```sh
.venv/bin/{command}
```

measures them, stores them in [performance.json](performance.json), draws the figures and writes
this page, with the environment that `make demo` or `make test` set up.
It takes five minutes on a quiet machine. `--quick` takes half a minute, with small sizes, and
writes to `build/benchmarks`; `--page` only writes the page again.

{machine}

![Ratios of times](performance-ratios.png)

An aim is the largest ratio that we accept. {verdict}
"""
LINEAR = """
## Linear models

A calibration gives the whole curve over beta, its minimum, and the posterior's decomposition.
The variance is known and the risk is Gibbs' where nothing else is said: for folds it needs no more
of the rows than their second moments. The predictive risk looks at single rows, and so does
leave-one-out of an unknown variance, whose posterior without a row has a scale of its own.
The least that any method must do is one product `X'X` and one eigendecomposition.
`RidgeCV` is leave-one-out over 100 penalties.
Columns are alike; uneven ones differ in size up to a hundred times, which takes more points.
Reference risk, the default here, looks at every row under many scales and asks leave-one-out.
Standard errors are computed when asked for, and not in these times: they need the losses of single
rows, for ten folds another product with all rows.
With few values the time is that of a hundred calls of numpy, one or two milliseconds.
"""
SAFE_BAYES = """
## SafeBayes

The plain loop updates the precision, computes the mean and the covariance of the posterior and
predicts the next row, at one beta after the other. The thrifty one solves one system of equations
for no more than the prediction needs.
"""
THESIS = """
## The thesis' method

Monte Carlo gradients: at each of 300 steps every pair's posterior is fitted at the current alpha
and sampled 2000 times. Their times are carried from a part of one step to all.
For linear models and all strategies but the bootstrap the thesis hands a closed form to
scipy.optimize instead; the last column has that time.
The sum over all settings takes the method that the thesis took.
"""
LOGISTIC = """
## Logistic models with many rows

Five folds beside scikit-learn's five folds. From 5e4 numbers on, one fit of all rows, and a Newton
step that takes each fold out of it, sketch the curve; the folds themselves are fitted where the
sketch is smallest, and where it leaves a doubt. Bayes' risk and standard errors are computed when
asked for, which takes another point of the curve.
"""
GROWTH = """
## Growth

![Time and memory over rows and columns](performance-growth.png)

Exponents of growth, fitted to the upper half of the sizes on logarithmic scales, of linear models,
and of a logistic one where it says mean-field.
Logistic models are fitted for every pair of folds or draws. Beyond 500 rows leave-one-out fits
all rows once and takes each out by a Newton step, and SafeBayes fits prefixes that grow by a
fiftieth, fifty times the rows in all: both are linear, too.
Below the theory's exponents there are costs that do not grow; they still show at these sizes.
"""
THREADS = """
## Threads

Small matrices do not pay for threads: up to {large:.0e} values the library keeps BLAS to one.
These are times by the clock on the wall, which other work on the machine disturbs.
"""
FROM_DISK = """
## Data that do not fit

`temperance.streaming.calibrate_blocks` sees every row once and keeps O(d²) numbers for each fold.
"""


def page(results: Results) -> str:
    """Write the page."""
    parts = [
        INTRODUCTION.format(
            command=results.command, machine=_machine(results), verdict=_verdict(results)
        )
    ]
    if results.of("linear"):
        parts += [LINEAR, _table(results.of("linear"))]
    if results.of("safe-bayes"):
        parts += [SAFE_BAYES, _table(results.of("safe-bayes")), _memory(results)]
    if results.of("thesis"):
        both = results.of("thesis") + results.of("thesis, larger") + results.of("thesis, all")
        parts += [THESIS, _table(both, published=True)]
    if results.of("logistic"):
        parts += [LOGISTIC, _table(results.of("logistic"))]
    if results.of("growth in rows"):
        parts += [GROWTH, _growth(results)]
    if results.of("threads"):
        from temperance.resources import LARGE

        parts += [THREADS.format(large=LARGE), _threads(results.of("threads"))]
    if results.of("from disk"):
        parts += [FROM_DISK, _from_disk(results.of("from disk")[0])]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def duration(seconds: float) -> str:
    """Write a time in a unit that fits.

    >>> duration(0.00123), duration(75.0), duration(7200.0)
    ('1.2 ms', '75 s', '2 h')
    """
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= size or unit == "ms":
            value = seconds / size
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"
    raise AssertionError(seconds)


def ratio(value: float) -> str:
    """Write a ratio of times as a factor.

    >>> ratio(2.34), ratio(0.002)
    ('2.3', '1 / 500')
    """
    if value <= 0.1:
        return f"1 / {1 / value:,.0f}"
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _machine(results: Results) -> str:
    machine, versions = results.machine, results.versions
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"Measured on {machine['cores']} cores of {machine['processor']}, "
        f"{machine['blas']}, threads: {machine['blas_threads']}; {packages}."
    )


def _verdict(results: Results) -> str:
    judged = [record for record in results.records if record.met is not None]
    missed = [record for record in judged if not record.met]
    if not missed:
        return f"All {len(judged)} were reached."
    lines = [
        f"{len(judged) - len(missed)} of {len(judged)} were reached. Missed, with the ratios:",
        "",
    ]
    groups: dict[tuple[str, str, float], list[str]] = {}
    for record in missed:
        key = (record.work, record.beside, record.aim or 0.0)
        groups.setdefault(key, []).append(f"{ratio(record.ratio or 0.0)} at {_times(record.case)}")
    lines += [
        f"- {work} beside {beside}, aim {ratio(aim)}: {', '.join(found)}"
        for (work, beside, aim), found in groups.items()
    ]
    return "\n".join(lines)


def _table(records: list[Record], published: bool = False) -> str:
    head = ["work", "size", "time", "beside", "its time", "ratio", "aim"]
    if published:
        head.append("closed form and scipy.optimize")
    rows = [head, ["---"] * len(head)]
    for record in records:
        row = [
            record.work,
            _times(record.case),
            duration(record.ours),
            record.beside,
            duration(record.theirs or 0.0),
            ratio(record.ratio or 0.0),
            "" if record.aim is None else ratio(record.aim) + ("" if record.met else ", missed"),
        ]
        if published:
            direct = record.numbers.get("as published")
            row.append("" if direct in (None, record.theirs) else duration(direct))
        rows.append(row)
    notes = list(dict.fromkeys(record.extrapolated for record in records if record.extrapolated))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return table + "".join(f"\n\nIts time: {note}." for note in notes)


def _memory(results: Results) -> str:
    peaks = [
        f"{record.numbers['peak memory over the data']:.1f} times the data at {_times(record.case)}"
        for record in results.of("safe-bayes")
        if "peak memory over the data" in record.numbers
    ]
    return f"Peak memory of SafeBayes: {', '.join(peaks)}: O(n d).\n" if peaks else ""


def _growth(results: Results) -> str:
    rows = ["| strategy | over | time | memory | theory |", "| --- | --- | --- | --- | --- |"]
    for axis, theory in THEORY.items():
        records = results.of(f"growth in {axis}")
        for work in dict.fromkeys(record.work for record in records):
            points = [record for record in records if record.work == work]
            time, memory = slope(points), slope(points, "peak")
            rows.append(f"| {work} | {axis} | {time:.2f} | {memory:.2f} | {theory} |")
    return "\n".join(rows)


def _threads(records: list[Record]) -> str:
    rows = [
        "| work | size | as the library chooses | one thread | all threads |",
        "| --- | --- | --- | --- | --- |",
    ]
    rows += [
        f"| {record.work} | {_times(record.case)} | {duration(record.ours)} | "
        f"{duration(record.numbers['one thread'])} | {duration(record.theirs or 0.0)} |"
        for record in records
    ]
    return "\n".join(rows)


def _from_disk(record: Record) -> str:
    numbers = record.numbers
    return (
        f"{numbers['values']:.0e} values, {_times(record.case)}, "
        f"{numbers['bytes on disk'] / 1e6:.0f} MB on disk: {duration(record.ours)} in one pass, "
        f"beside {duration(record.theirs or 0.0)} with {record.beside}. Peak memory "
        f"{numbers['peak bytes'] / 1e6:.0f} MB; the curves differ by at most "
        f"{numbers['largest relative difference of the curves']:.0e}."
    )


def _times(case: str) -> str:
    return case.replace(" x ", " × ")
