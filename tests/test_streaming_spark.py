"""The recipe for Spark, as the page has it, on a real Spark where there is one."""

import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from temperance import models
from temperance.streaming import calibrate_blocks

PAGE = Path(__file__).resolve().parents[1] / "docs" / "spark.md"


def recipe():
    (block,) = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return block


def test_the_recipe_is_short():
    assert len(recipe().splitlines()) < 30


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_recipe_runs_on_spark(monkeypatch):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is no command java")
    from pyspark.sql import SparkSession

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 5))
    table = pandas.DataFrame(X, columns=list("abcde")).assign(
        y=X[:, 0] + 30 * rng.standard_normal(4000)
    )
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.adaptive.enabled", "false")  # it joins small partitions
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "300")
        .config("spark.executorEnv.PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        .getOrCreate()
    )
    try:
        rows = spark.createDataFrame(table).repartitionByRange(9, "e")
        rows = rows.localCheckpoint().filter("e < 0.9")  # cut anew, the ranges would be others
        parts = rows.rdd.glom().collect()  # what lies in each partition
        names = {"rows": rows}
        exec(compile(recipe(), str(PAGE), "exec", dont_inherit=True), names)
    finally:
        spark.stop()
    assert len(parts) == 9 and not all(parts)  # some are empty
    blocks = [
        (np.array([row[:-1] for row in part]), np.array([row[-1] for row in part]))
        if part
        else (np.empty((0, 5)), np.empty(0))
        for part in parts
    ]
    expected = calibrate_blocks(models.GaussianLinear(), blocks, risk="gibbs", folds="blocks")
    found = names["calibration"]
    assert found.beta == pytest.approx(expected.beta, rel=1e-9)
    betas = np.array([0.0, 1e-3, 0.1, 1.0, 3.0])
    np.testing.assert_allclose(found.curve(betas), expected.curve(betas), rtol=1e-12)
