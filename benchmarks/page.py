"""The page: tables of stored times, works by sizes."""

from __future__ import annotations

from benchmarks.record import Record, Results

INTRODUCTION = """\
# Performance

How long does a calibration of n rows and d columns take, compared with what you would use instead?
Times are processor times, the best of three runs (of fewer if one takes seconds), with one thread
of BLAS. Alternatives are in italics; in brackets is the ratio of a time to that of its alternative.
On another machine the times differ, the ratios much less.

```sh
.venv/bin/{command}
```

measures everything in about four minutes, stores it in [performance.json](performance.json), draws
the figure and writes this page, in the environment that `make test` sets up. `--quick` takes half a
minute for small sizes and writes to `build/benchmarks`; `--page` only writes the page again.

{machine}

![Ratios of times](performance-ratios.png)
"""
ESTIMATORS = """
## Estimators

The estimators are called without options. A fit does more than its alternative: it learns the scale
of the prior, and stacks forecasts over beta, weighted by how well they do on held-out rows.
"""
LINEAR = """
## Linear models

These are times for the risk at every beta and its minimum. Unless the table says otherwise, the
noise variance is known and the risk is the Gibbs risk, for which reference risk is the default.
Leave-one-out is compared with `RidgeCV`, which is leave-one-out, too, and all others with
`BayesianRidge`. Standard errors are computed on request, and not included in these times.
"""
LOGISTIC = """
## Logistic models

Four approximations of the posterior, compared with five folds for each of ten penalties.
"""
SAFE_BAYES = """
## SafeBayes

The plain loop forecasts each row from those before it, for each beta that `scipy.optimize` tries.
"""
FROM_DISK = """
## Data larger than memory

For the Gibbs risk `temperance.streaming.calibrate_blocks` sees every row once and keeps O(d²)
numbers for each fold.
"""
SECTIONS = {
    ESTIMATORS: ("regressor", "classifier"),
    LINEAR: ("linear",),
    LOGISTIC: ("logistic",),
    SAFE_BAYES: ("safe-bayes",),
}


def page(results: Results) -> str:
    """Write the page."""
    parts = [INTRODUCTION.format(command=results.command, machine=_machine(results))]
    for text, sections in SECTIONS.items():
        parts += [text, *(table(results, section) for section in sections)]
    parts.append(FROM_DISK + _from_disk(*results.of("from disk")))
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def table(results: Results, section: str) -> str:
    """Write a row for each work and a column for each size, alternatives last."""
    records = results.of(section)
    sizes = list(dict.fromkeys(record.size for record in records))
    works: dict[str, dict[str, Record]] = {}
    for record in sorted(records, key=lambda each: not each.beside):
        works.setdefault(record.work, {})[record.size] = record
    rows = [["", *sizes], ["---"] * (1 + len(sizes))]
    for work, found in works.items():
        name = work if any(each.beside for each in found.values()) else f"*{work}*"
        rows.append([name, *(_cell(results, found.get(size)) for size in sizes)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def duration(seconds: float) -> str:
    """Write a time in a unit that fits.

    >>> duration(0.00123), duration(75.0)
    ('1.2 ms', '75 s')
    """
    value, unit = (seconds, "s") if seconds >= 1 else (1e3 * seconds, "ms")
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"


def ratio(value: float) -> str:
    """Write a ratio of times as a factor.

    >>> ratio(2.34), ratio(0.002)
    ('2.3', '1/500')
    """
    if value <= 0.1:
        return f"1/{1 / value:,.0f}"
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _cell(results: Results, record: Record | None) -> str:
    if record is None:
        return ""
    beside = results.ratio(record)
    return duration(record.seconds) + ("" if beside is None else f" ({ratio(beside)})")


def _machine(results: Results) -> str:
    machine, versions = results.machine, results.versions
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"Measured on {machine['processor']}, {machine['blas']}; {packages}."


def _from_disk(ours: Record, theirs: Record) -> str:
    numbers = ours.numbers
    return (
        f"{ours.size} values, {numbers['bytes on disk'] / 1e6:.0f} MB on disk, take "
        f"{duration(ours.seconds)} of wall-clock time for {ours.work},\nand "
        f"{duration(theirs.seconds)} for {theirs.work}. "
        f"Peak memory is {numbers['peak bytes'] / 1e6:.0f} MB.\n"
        "Both curves agree to a relative difference of "
        f"{numbers['largest relative difference of the curves']:.0e}."
    )
