"""How time and peak memory grow with rows, columns and draws."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.problems import classification, regression
from benchmarks.record import Record
from benchmarks.timing import peak_bytes, seconds
from temperance import calibrate, models, strategies

STRATEGIES = {
    "sample splitting": strategies.SampleSplitting(),
    "10-fold": strategies.KFold(),
    "leave-one-out": strategies.LeaveOneOut(),
    "reference risk": strategies.ReferenceRisk(),
    "SafeBayes": strategies.SafeBayes(),
    "bootstrap, 20 draws": strategies.Bootstrap(20),
}
LOGISTIC_STRATEGIES = {
    "5-fold": strategies.KFold(5),
    "leave-one-out": strategies.LeaveOneOut(),
    "SafeBayes": strategies.SafeBayes(),
    "bootstrap, 20 draws": strategies.Bootstrap(20),
}
ROWS = [2000, 4000, 8000, 16_000, 32_000, 64_000]
COLUMNS = [20, 40, 80, 160, 320]
LOGISTIC_ROWS = [4000, 8000, 16_000, 32_000]
DRAWS = [50, 100, 200, 400, 800]
THEORY = {"rows": "1", "columns": "2 to 3", "draws": "1", "rows, mean-field": "1"}


def measure(quick: bool) -> Iterator[Record]:
    """Yield times and peaks over each axis."""
    model = models.GaussianLinear(noise_variance=1.0)
    for name, strategy in STRATEGIES.items():
        for n in ROWS[:2] if quick else ROWS:
            yield _point("rows", name, n, partial(calibrate, model, *regression(n, 20), strategy))
        for d in COLUMNS[:2] if quick else COLUMNS:
            data = regression(4000, d)
            yield _point("columns", name, d, partial(calibrate, model, *data, strategy))
    for draws in DRAWS[:2] if quick else DRAWS:
        call = partial(calibrate, model, *regression(200, 20), strategies.Bootstrap(draws))
        yield _point("draws", "bootstrap", draws, call)
    logistic = models.MeanFieldLogistic()
    for name, strategy in LOGISTIC_STRATEGIES.items():
        for n in (600, 1200) if quick else LOGISTIC_ROWS:
            call = partial(calibrate, logistic, *classification(n, 10), strategy)
            yield _point("rows, mean-field", name, n, call)


def slope(records: list[Record], what: str = "seconds") -> float:
    """Fit the exponent of growth to the upper half, where fixed costs matter least."""
    points = sorted((each.numbers["at"], _value(each, what)) for each in records)
    upper = np.log(points[len(points) // 2 - 1 :])
    return float(np.polyfit(upper[:, 0], upper[:, 1], 1)[0])


def _value(record: Record, what: str) -> float:
    return record.ours if what == "seconds" else record.numbers["peak"]


def _point(axis: str, name: str, at: int, call: partial) -> Record:
    took = seconds({"ours": call}, repeats=3, budget=3.0)["ours"]
    return Record(
        f"growth in {axis}", name, str(at), took, numbers={"at": at, "peak": peak_bytes(call)}
    )
