"""Tables from files: every bad file gets one line, and every good one the same numbers."""

from __future__ import annotations

import datetime
import decimal
import io
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from temperance import GibbsRegressor
from temperance import data as memory
from temperance.app.tables import (
    Column,
    Table,
    TableError,
    diabetes,
    new_rows,
    prepare,
    read_frame,
    reading,
)

MISSING = "(empty cells, NA, N/A, NaN, NULL and None count as missing)"
REPAIR = (
    "correct it, leave the cell empty and use --drop-missing, or leave the column out with --drop"
)
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01"


def stored(directory, content, name="data.csv"):
    path = directory / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def stored_parquet(directory, frame):
    path = directory / "data.parquet"
    frame.to_parquet(path)
    return path


def table(frame, target="y", **options):
    return prepare(pd.DataFrame(frame), target, name="data", **options)


def from_csv(directory, text, target="y", **options):
    return prepare(read_frame(stored(directory, text)), target, name="data.csv", **options)


def message_of(call, *arguments, **options):
    with pytest.raises(TableError) as raised:
        call(*arguments, **options)
    assert len(str(raised.value).splitlines()) == 1
    return str(raised.value)


def duplicated_parquet():
    sink = io.BytesIO()
    parquet.write_table(pa.table([[1, 2], [3, 4]], names=["a", "a"]), sink)
    return sink.getvalue()


def parquet_bytes(frame):
    sink = io.BytesIO()
    frame.to_parquet(sink)
    return sink.getvalue()


BAD_FILES = {
    "empty": (b"", "data.csv", "{} is empty"),
    "byte order mark only": (b"\xef\xbb\xbf", "data.csv", "{} is empty"),
    "blank": (b" \n\n \n", "data.csv", "{} is empty"),
    "header only": (b"x,y\n", "data.csv", "{} has a header but no rows"),
    "header only, no line end": (b"x,y", "data.csv", "{} has a header but no rows"),
    "png": (
        PNG,
        "data.csv",
        "{} is neither text nor Parquet (byte 9 is NUL); expected CSV or Parquet",
    ),
    "nul": (
        b"x,y\n1,\x002\n",
        "data.txt",
        "{} is neither text nor Parquet (byte 7 is NUL); expected CSV or Parquet",
    ),
    "latin-1": (
        "x,y\n1,2\nä,3\n".encode("latin-1"),
        "data.csv",
        "{} is not text in UTF-8: byte 0xe4 in line 3; save it in UTF-8",
    ),
    "random bytes": (
        bytes(range(128, 256)),
        "data.csv",
        "{} is not text in UTF-8: byte 0x80 in line 1; save it in UTF-8",
    ),
    "utf-16": (
        "x,y\n1,2\n".encode("utf-16"),
        "data.csv",
        "{} is text in UTF-16; save it as CSV in UTF-8 or as Parquet",
    ),
    "workbook": (
        b"PK\x03\x04\x14\x00",
        "data.xlsx",
        "{} is an Excel workbook or a zip archive; save it as CSV in UTF-8 or as Parquet",
    ),
    "old workbook": (
        b"\xd0\xcf\x11\xe0\xa1",
        "data.xls",
        "{} is an old Excel workbook; save it as CSV in UTF-8 or as Parquet",
    ),
    "compressed": (
        b"\x1f\x8b\x08\x00",
        "data.csv.gz",
        "{} is compressed; save it as CSV in UTF-8 or as Parquet",
    ),
    "no parquet": (
        b"x,y\n1,2\n",
        "data.parquet",
        "{} is not a Parquet file, in spite of its name",
    ),
    "short parquet suffix": (
        b"x,y\n1,2\n",
        "data.PQ",
        "{} is not a Parquet file, in spite of its name",
    ),
    "damaged parquet": (
        b"PAR1 and nothing else",
        "data.parquet",
        "{} begins like a Parquet file but cannot be read as one",
    ),
    "parquet without rows": (
        parquet_bytes(pd.DataFrame({"x": [], "y": []})),
        "data.parquet",
        "{} has a header but no rows",
    ),
    "parquet with duplicates": (
        duplicated_parquet(),
        "data.parquet",
        "{} has several columns named 'a'; rename them",
    ),
    "too many cells": (
        b"x,y\n1,2\n\n3,4,5\n",
        "data.csv",
        "{}, line 4: got 3 cells where the header has 2"
        " (separated by commas; put quotes around a cell that has some)",
    ),
    "more cells in every row": (
        b"x;y\n1;2;3\n4;5;6\n",
        "data.csv",
        "{}, line 2: got 3 cells where the header has 2"
        " (separated by semicolons; put quotes around a cell that has some)",
    ),
    "too few cells": (
        b"x\ty\tz\n1\t2\t3\n1\t2\n",
        "data.tsv",
        "{}, line 3: got 2 cells where the header has 3"
        " (separated by tabs; put quotes around a cell that has some)",
    ),
    "open quote": (
        b'x,y\n1,"2\n3,4\n',
        "data.csv",
        "{}, line 3 cannot be read (unexpected end of data); check its quotes",
    ),
    "stray quote": (
        b'x,y\n1,"2"3\n',
        "data.csv",
        "{}, line 2 cannot be read (',' expected after '\"'); check its quotes",
    ),
    "huge cell": (
        b"x,y\n1," + b"2" * 200_000,
        "data.csv",
        "{}, line 2 cannot be read (field larger than field limit (131072)); check its quotes",
    ),
    "quoted nothing": (
        b'x,y\n1,2\n""\n3,4\n',
        "data.csv",
        "{} has rows that can be read in two ways; check its quotes",
    ),
    "no names": (b",\n,\n", "data.csv", "{} has no column with a name and values"),
    "nothing but quotes": (
        b'""',
        "data.csv",
        "{} has a single column, ''; expected at least two, separated by commas, semicolons, tabs",
    ),
    "duplicates": (
        b"x,y,x,y,z\n1,2,3,4,5\n",
        "data.csv",
        "{} has several columns named 'x', 'y'; rename them",
    ),
    "duplicates but for space": (
        b"x, x \n1,2\n",
        "data.csv",
        "{} has several columns named 'x'; rename them",
    ),
    "name of an unnamed column": (
        b"x,column 3,\n1,2,3\n",
        "data.csv",
        "{} has several columns named 'column 3'; rename them",
    ),
    "prose": (
        b"Dear reader\nhello\n",
        "letter.txt",
        "{} has a single column, 'Dear reader'; expected at least two,"
        " separated by commas, semicolons, tabs",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_file(case, tmp_path):
    content, name, expected = BAD_FILES[case]
    path = stored(tmp_path, content, name)
    assert message_of(read_frame, path) == expected.format(repr(str(path)))


WIDE = {
    "csv": lambda d: ",".join(f"c{j}" for j in range(d)) + "\n" + ",".join("1" * d) + "\n",
    "parquet": lambda d: pd.DataFrame(np.ones((1, d))).add_prefix("c"),
}


@pytest.mark.parametrize("kind", WIDE)
def test_too_many_columns(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_COLUMNS", 30)
    content = WIDE[kind](31)
    path = (stored if kind == "csv" else stored_parquet)(tmp_path, content)
    monkeypatch.setattr(reading, "_rows", only_the_header(reading._rows))
    expected = f"{str(path)!r} has 31 columns, but at most 30 are read"
    assert message_of(read_frame, path) == expected
    assert reading.MOST_COLUMNS < 1_000_000


def only_the_header(rows):
    """Read on only until the columns are known."""

    def first(*arguments):
        yield next(rows(*arguments))
        pytest.fail("the rows are read in spite of their columns")

    return first


def test_tables_that_do_not_fit(tmp_path, monkeypatch):
    row = ",".join("1" * 40) + "\n"
    path = stored(tmp_path, ",".join(f"{j:02}" for j in range(40)) + "\n" + row * 20)
    file, size = repr(str(path)), path.stat().st_size
    monkeypatch.setattr("pandas.read_csv", pytest.fail)
    monkeypatch.setattr(memory, "available_bytes", lambda: 10_000)
    assert message_of(read_frame, path) == (
        f"{file}, of {size:.3g} bytes, would take {8 * size:.3g} bytes of memory, 1e+04 are "
        "available"
    )
    monkeypatch.setattr(memory, "available_bytes", lambda: 20_000)
    assert message_of(read_frame, path) == (
        f"the table in {file}, of 20 rows and 40 columns, would take {4 * 8 * 20 * 40:.3g} bytes "
        "of memory, 2e+04 are available"
    )


def test_parquet_that_is_small_only_on_disk(tmp_path, monkeypatch):
    path = stored_parquet(tmp_path, pd.DataFrame({"x": np.zeros(10**6), "y": np.zeros(10**6)}))
    assert path.stat().st_size < 10**5
    monkeypatch.setattr(memory, "available_bytes", lambda: 2e7)
    expected = (
        f"the table in {str(path)!r}, of 1000000 rows and 2 columns, would take 6.4e+07 bytes of "
        "memory, 2e+07 are available"
    )
    assert message_of(read_frame, path) == expected


def test_many_columns_are_not_looked_at_one_by_one(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((30, 600))).add_prefix("c")
    frame.insert(300, "hue", rng.choice(["red", "blue", "green"], 30))
    frame.insert(400, "number", rng.permutation(30))
    path = stored(tmp_path, frame.to_csv(index=False))
    taken = []
    own = pd.DataFrame.__getitem__

    def take(self, key):
        taken.append(key)
        return own(self, key)

    monkeypatch.setattr(pd.DataFrame, "__getitem__", take)
    found = prepare(read_frame(path), "c599", name="data")
    assert len(taken) < 20
    first = frame["hue"].value_counts().sort_index().idxmax()
    levels = [f"hue={level}" for level in ("blue", "green", "red") if level != first]
    names = [*frame.columns[:300], *levels, *frame.columns[301:-1]]
    assert list(found.inputs) == names
    np.testing.assert_array_equal(found.inputs["c598"], frame["c598"])
    for level in levels:
        np.testing.assert_array_equal(found.inputs[level], frame["hue"] == level[4:])
    assert found.notices[-1].endswith("leave them out with --drop?: 'number'.")


def test_many_encoded_columns_are_told_in_few_words():
    flags = {f"flag {j}": [True, False, True, False] for j in range(30)}
    found = prepare(pd.DataFrame({**flags, "y": [1.0, 2.0, 4.0, 3.0]}), "y", name="data")
    assert found.inputs.shape == (4, 30)
    assert found.notices[-1].startswith("True counts as 1, false as 0: 'flag 0', 'flag 1', ")
    assert found.notices[-1].endswith("'flag 9', and 20 more.")


def test_missing_file(tmp_path):
    path = tmp_path / "absent.csv"
    assert message_of(read_frame, path) == f"there is no file {str(path)!r}"


def test_directory(tmp_path):
    expected = f"{str(tmp_path)!r} is a directory; name a file in it"
    assert message_of(read_frame, tmp_path) == expected


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a device without an end")
def test_device():
    expected = "'/dev/zero' is a device; name a file"
    assert message_of(read_frame, "/dev/zero") == expected


@pytest.mark.parametrize(
    "error, expected",
    [
        (PermissionError(13, "Permission denied"), "there is no permission to read {}"),
        (OSError(5, "Input/output error"), "{} cannot be read: Input/output error"),
    ],
)
def test_file_that_does_not_open(error, expected, tmp_path, monkeypatch):
    def refuse(path):
        raise error

    path = stored(tmp_path, "x,y\n1,2\n")
    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    assert message_of(read_frame, path) == expected.format(repr(str(path)))


def test_path_with_a_nul_byte():
    assert message_of(read_frame, "a\0b.csv").startswith(r"'a\x00b.csv' ")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    path = stored_parquet(tmp_path, pd.DataFrame({"x": [1], "y": [2]}))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    expected = f"{str(path)!r} is a Parquet file, which needs pyarrow: pip install pyarrow"
    assert message_of(read_frame, path) == expected


X = [1.0, 2.0, 4.0]
Y = [0.5, 0.1, 0.9]
BAD_TABLES = {
    "no such column": (
        {"Age": X, "y": Y},
        {"target": "agee"},
        "there is no column 'agee' for --target; did you mean 'Age'? the columns are 'Age', 'y'",
    ),
    "no column alike": (
        {"x": X, "y": Y},
        {"target": "price"},
        "there is no column 'price' for --target; the columns are 'x', 'y'",
    ),
    "many columns": (
        {f"x{i}": X for i in range(12)},
        {"target": "price"},
        "there is no column 'price' for --target; the columns are 'x0', 'x1', 'x2', 'x3', 'x4',"
        " 'x5', 'x6', 'x7', 'x8', 'x9', and 2 more",
    ),
    "drop of an absent column": (
        {"x": X, "y": Y},
        {"drop": ["x", "z"]},
        "there is no column 'z' for --drop; the columns are 'x', 'y'",
    ),
    "absent weights": (
        {"x": X, "y": Y},
        {"weights": "w"},
        "there is no column 'w' for --weights; the columns are 'x', 'y'",
    ),
    "drop of the target": (
        {"x": X, "y": Y},
        {"drop": ["y"]},
        "column 'y' is the target and cannot be dropped",
    ),
    "weights as target": (
        {"x": X, "y": Y},
        {"weights": "y"},
        "column 'y' cannot be both the target and the weights",
    ),
    "drop of the weights": (
        {"x": X, "y": Y},
        {"weights": "x", "drop": ["x"]},
        "column 'x' holds the weights and cannot be dropped",
    ),
    "no rows": ({"x": [], "y": []}, {}, "the table has no rows"),
    "text in a numeric column": (
        {"x": ["1", "unknown", "3", "4"], "y": [1, 2, 3, 4]},
        {},
        f"column 'x' has text among its numbers: 'unknown' in data row 2; {REPAIR}",
    ),
    "several texts in a numeric column": (
        {"x": ["1", None, "3", "?", "-", "5"], "y": range(6)},
        {},
        f"column 'x' has text among its numbers: '?' in data row 4, and 1 more; {REPAIR}",
    ),
    "text in a numeric target": (
        {"x": X, "y": ["1", "2", "a"]},
        {},
        f"column 'y' has text among its numbers: 'a' in data row 3; {REPAIR}",
    ),
    "infinite": (
        {"x": [1.0, 2.0, -np.inf], "y": Y},
        {},
        f"column 'x' has -inf in data row 3; {REPAIR}",
    ),
    "infinite target after a missing row": (
        {"x": [None, 2.0, 4.0], "y": [0.0, 1.0, np.inf]},
        {"drop_missing": True},
        f"column 'y' has inf in data row 3; {REPAIR}",
    ),
    "missing": (
        {"x": [1.0, None, None], "c": ["a", None, "b"], "b": [True, False, None], "y": Y},
        {},
        "2 of 3 rows have missing values, in 'x' (2), 'c' (1), 'b' (1); leave the rows out with"
        f" --drop-missing or the columns with --drop {MISSING}",
    ),
    "missing in many columns": (
        {**{f"x{i}": [1.0, None, None] for i in range(11)}, "y": Y},
        {},
        "2 of 3 rows have missing values, in 'x0' (2), 'x1' (2), 'x2' (2), 'x3' (2), 'x4' (2),"
        " 'x5' (2), 'x6' (2), 'x7' (2), 'x8' (2), 'x9' (2), and 1 more columns; leave the rows out"
        f" with --drop-missing or the columns with --drop {MISSING}",
    ),
    "no complete row": (
        {"x": [None, 1.0, 2.0], "z": [None] * 3, "y": Y},
        {"drop_missing": True},
        "all 3 rows have missing values, in 'x' (1), 'z' (3); leave columns out with --drop"
        f" {MISSING}",
    ),
    "one class": (
        {"x": X, "y": ["a"] * 3},
        {},
        "the target, 'y', has a single class, 'a', in every row; there is nothing to learn from it",
    ),
    "one class with weight": (
        {"x": X, "y": [True, True, False], "w": [1, 2, 0]},
        {"weights": "w"},
        "the target, 'y', has a single class, True, in every row; there is nothing to learn from"
        " it",
    ),
    "constant target": (
        {"x": X, "y": [3, 3, 3]},
        {},
        "the target, 'y', has a single value, 3.0, in every row; there is nothing to learn from it",
    ),
    "continuous classes": (
        {"x": range(21), "y": np.arange(21) / 2},
        {"task": "classification"},
        "the target, 'y', has 21 distinct numbers and looks continuous, but a classification takes"
        " at most 20 classes; take --model linear for a regression",
    ),
    "classes in prose": (
        {"x": range(21), "y": [f"name {i}" for i in range(21)]},
        {},
        "the target, 'y', has 21 distinct texts such as 'name 0', but a classification takes at"
        " most 20 classes; numbers must come without signs of currency and thousands",
    ),
    "regression on text": (
        {"x": X, "y": ["a", "b", "a"]},
        {"task": "regression"},
        "the target of a regression must be numbers, got text: column 'y' has 'a' in data row 1;"
        " take --model logistic for a classification",
    ),
    "only the target": ({"y": Y}, {}, "no input column is left"),
    "all dropped": ({"x": X, "y": Y}, {"drop": ["x"]}, "no input column is left"),
    "only constants": (
        {"x": [1, 1, 1], "c": ["a"] * 3, "y": Y},
        {},
        "no input column is left: 'x', 'c' have the same value in every row",
    ),
    "identifier": (
        {
            "x": range(40),
            "id": [f"p{i // 2 * 2 if i < 38 else i}" for i in range(40)],
            "y": range(40),
        },
        {},
        "column 'id' looks like an identifier, with 21 distinct texts in 40 rows; leave it out with"
        " --drop",
    ),
    "too many levels": (
        {"city": [f"c{i % 101}" for i in range(303)], "y": range(303)},
        {},
        "column 'city' has 101 distinct texts, but at most 100 can become inputs; leave it out with"
        " --drop",
    ),
    "encoded name in use": (
        {"c": ["a", "b", "a"], "c=b": X, "y": Y},
        {},
        "the table, with its text encoded, has several columns named 'c=b'; rename them",
    ),
    "negative weights": (
        {"x": X, "y": Y, "w": [1, -2, -3]},
        {"weights": "w"},
        "weights must not be negative: column 'w' has -2.0 in data row 2",
    ),
    "zero weights": (
        {"x": X, "y": Y, "w": [0, 0, 0]},
        {"weights": "w"},
        "weights must not all be zero, as in column 'w'",
    ),
    "text weights": (
        {"x": X, "y": Y, "w": ["a", "b", "c"]},
        {"weights": "w"},
        "weights must be numbers, got text: column 'w' has 'a' in data row 1",
    ),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_table(case):
    columns, options, expected = BAD_TABLES[case]
    assert message_of(table, columns, **options) == expected


def test_duplicated_names_in_a_frame():
    frame = pd.DataFrame([[1, 2, 3]], columns=["x", "x", "y"])
    assert message_of(table, frame) == "the table has several columns named 'x'; rename them"


def test_unknown_task():
    with pytest.raises(ValueError, match="task must be one of 'regression', 'classification', got"):
        table({"x": X, "y": Y}, task="clustering")


@pytest.mark.parametrize(
    "values, kind",
    [
        ([[1, 2], [3]], "lists or values of several kinds"),
        ([{"a": 1}, {"a": 2}], "lists or values of several kinds"),
        ([b"\x00", b"\x01"], "bytes"),
    ],
    ids=["list", "struct", "binary"],
)
def test_columns_of_other_kinds_in_parquet(values, kind, tmp_path):
    path = stored_parquet(tmp_path, pd.DataFrame({"x": [1, 2], "when": values, "y": [0.5, 1.5]}))
    frame = read_frame(path)
    assert message_of(prepare, frame, "y", name="data") == (
        f"column 'when' holds neither numbers nor text nor true/false, but {kind};"
        " leave it out with --drop"
    )
    assert list(prepare(frame, "y", name="data", drop=["when"]).inputs) == ["x"]


def test_plain_numbers():
    result = table({"x": [1, 2, 4], "y": Y})
    assert isinstance(result, Table)
    assert (result.name, result.target_name, result.task) == ("data", "y", "regression")
    assert result.inputs.dtypes.tolist() == [float]
    assert result.inputs["x"].tolist() == X
    assert result.target.tolist() == Y
    assert result.weights is None
    assert result.notices == (
        "The target, 'y', is numeric: this is a regression"
        " (--model logistic makes it a classification).",
    )


TEXT = "The target, 'y', is text: the model is logistic."
TRUTH = (
    "The target, 'y', is true or false: the model is logistic"
    " (--model linear makes it a regression)."
)
TWO = (
    "The target, 'y', has two distinct values: the model is logistic"
    " (--model linear makes it a regression)."
)
NUMERIC = "The target, 'y', is numeric: this is a regression."


@pytest.mark.parametrize(
    "values, task, kind, notice",
    [
        (["b", "a", "c"] * 7, "classification", "U", TEXT),
        ([True, False, True] * 7, "classification", "b", TRUTH),
        (["true", "false", "true"] * 7, "classification", "b", TRUTH),
        ([0, 1, 1] * 7, "classification", "i", TWO),
        ([0.0, 1.0, 1.0] * 7, "classification", "i", TWO),
        ([0.5, 1.0, 1.0] * 7, "classification", "f", TWO),
        (list(range(21)), "regression", "f", NUMERIC),
    ],
    ids=["text", "bool", "spelled bool", "int", "whole", "two floats", "numbers"],
)
def test_task_from_the_target(values, task, kind, notice):
    result = table({"x": np.linspace(0, 1, 21), "y": values})
    assert (result.task, result.target.dtype.kind) == (task, kind)
    assert result.notices == (notice,)
    if values[0] != "true":
        assert result.target.tolist() == values


def test_given_task_is_taken_without_a_notice():
    as_regression = table({"x": X, "y": [True, False, True]}, task="regression")
    assert as_regression.target.tolist() == [1.0, 0.0, 1.0]
    as_classification = table({"x": X, "y": [3, 1, 2]}, task="classification")
    assert as_classification.target.tolist() == [3, 1, 2]
    assert as_classification.target.dtype.kind == "i"
    assert as_regression.notices == as_classification.notices == ()


def test_twenty_numeric_classes_are_accepted():
    assert table({"x": range(20), "y": range(20)}, task="classification").task == "classification"


def test_encoding():
    columns = {
        "hue": ["red", "blue", "red"],
        "x": X,
        "size": ["s", "m", "l"],
        "flag": [False, True, True],
        "<script>": [1, 2, 3],
        "y": Y,
    }
    result = table(columns, task="regression")
    assert result.inputs.to_dict("list") == {
        "hue=blue": [0, 1, 0],
        "x": X,
        "size=m": [0, 1, 0],
        "size=s": [1, 0, 0],
        "flag": [0, 1, 1],
        "<script>": [1, 2, 3],
    }
    assert set(result.inputs.dtypes) == {np.dtype(float)}
    assert result.notices == (
        "Text is compared with its most frequent level: 'hue' with 'red'; 'size' with 'l'.",
        "True counts as 1, false as 0: 'flag'.",
        "Levels of fewer than 5 rows tell little: 'blue' of 'hue' (1), 'm' of 'size' (1), 's' of"
        " 'size' (1).",
    )


def test_the_reference_level_is_the_most_frequent_by_weight():
    columns = {"c": ["b", "a", "b", "a", "c"], "y": range(5), "w": [1, 2, 1, 2, 0]}
    assert table(columns, drop=["w"]).columns[0].reference == "a"  # the first of two
    assert (
        table({**columns, "c": ["b", "a", "b", "b", "c"]}, drop=["w"]).columns[0].reference == "b"
    )
    weighted = table(columns, weights="w", task="regression")
    assert weighted.columns == (Column("c", "levels", "a", ("b",)),)
    # The level without weight is as good as absent.
    assert list(weighted.inputs) == ["c=b"]
    copies = {"c": ["b", "a", "b", "a", "a", "a"], "y": range(6)}
    assert table(copies).columns == weighted.columns


def test_contrasts_can_be_read():
    rng = np.random.default_rng(1)
    place = rng.choice(["bay", "inland", "ocean"], 400, p=[0.2, 0.3, 0.5])
    price = 10 + 5.0 * (place == "bay") - 3.0 * (place == "inland") + rng.normal(size=400)
    result = table({"place": place, "price": price}, "price")
    fitted = GibbsRegressor(strategy="bayes", prior_scale=10).fit(result.inputs, result.target)
    assert dict(zip(result.inputs, fitted.coef_.round(), strict=True)) == {
        "place=bay": 5,
        "place=inland": -3,
    }
    low, high = fitted.coefficients().interval(0.95).T
    assert np.all(high - low < 1)


DAYS = ["2020-01-31", "2020-02-01", None]
STAMPS = ["2020-01-31T12:00", "2020-02-01 00:00:00Z", None]


@pytest.mark.parametrize(
    "values, days",
    [
        (DAYS, [18292, 18293]),
        (STAMPS, [18292.5, 18293]),
        (["2020-01-31T23:30:00.5+01:00", "0001-01-01", None], [18292 + 81000.5 / 86400, -719162]),
        (pd.to_datetime(DAYS), [18292, 18293]),
        (pd.to_datetime(DAYS, utc=True), [18292, 18293]),
        ([datetime.date(2020, 1, 31), datetime.date(2020, 2, 1), None], [18292, 18293]),
    ],
    ids=["days", "times", "zones", "datetime", "aware", "date"],
)
def test_dates_are_named_or_count_in_days(values, days):
    frame = {"x": X, "when": values, "y": Y}
    message = message_of(table, frame, drop_missing=True)
    assert message.startswith("column 'when' holds dates such as '")
    assert message.endswith("; count its days with --dates-as-days, or leave it out with --drop")
    result = table(frame, drop_missing=True, dates_as_days=True, task="regression")
    np.testing.assert_allclose(result.inputs["when"], days, rtol=1e-12)
    assert result.notices[-1] == "Dates count in days: 'when'."
    assert result.columns[1] == Column("when", "days")


@pytest.mark.parametrize("text", ["2020-13-01", "20200131", "1/2/2020", "2020-01-31 noon"])
def test_what_is_no_date_stays_text(text):
    frame = {"when": ["2020-01-31", text] * 2, "y": range(4)}
    assert table(frame, task="regression").columns[0].kind == "levels"


def test_all_bad_columns_are_named_at_once():
    n = 30
    frame = {
        "id": [f"p{i}" for i in range(n)],
        "sold on": pd.date_range("2020-01-01", periods=n),
        "built": [f"19{i + 10}-01-01" for i in range(n)],
        "x": ["?", *map(str, range(n - 1))],
        "tags": [[1]] * n,
        "far": [np.inf, *range(n - 1)],
        "gap": [None, *range(n - 1)],
        "y": np.linspace(0, 1, n),
    }
    expected = (
        "6 columns cannot be used: 'id' looks like an identifier, with 30 distinct texts in 30"
        " rows; 'sold on' holds dates such as '2020-01-01 00:00:00'; 'built' holds dates such as"
        " '1910-01-01'; 'x' has text among its numbers: '?' in data row 1; 'tags' holds neither"
        " numbers nor text nor true/false, but lists or values of several kinds; 'far' has inf in"
        " data row 1; count the days of dates with --dates-as-days, or correct cells, or leave them"
        " empty and use --drop-missing, or leave them out with --drop id --drop 'sold on' --drop"
        " built --drop x --drop tags --drop far"
    )
    gap = "; 1 of 30 rows have missing values, in 'gap' (1): use --drop-missing"
    assert message_of(table, frame) == expected + gap
    # Without the row that has a gap, nothing is infinite.
    assert "'far'" not in message_of(table, frame, drop_missing=True)
    bad = ["id", "sold on", "built", "x", "tags", "far"]
    assert list(table(frame, drop=bad, drop_missing=True).inputs) == ["gap"]


def test_a_bad_target_is_not_offered_to_be_dropped():
    frame = {"x": DAYS[:2] * 2, "y": DAYS[:2] * 2}
    assert message_of(table, frame).endswith("or leave them out with --drop x")


class TestNewRows:
    COLUMNS = {
        "x": [1.0, 2.0, 4.0, 5.0],
        "hue": ["red", "blue", "red", "7"],
        "flag": [True, False, True, False],
        "when": ["2020-01-31", "2020-02-01", "2020-02-02", "2020-02-09"],
        "one": [1, 1, 1, 1],
        "y": [1.0, 2.0, 3.0, 5.0],
    }
    CSV = "when,extra,hue,flag,x\n2020-03-01,?,7,true,3\n2020-03-02,?,red,false,1\n"

    @pytest.fixture
    def fitted(self):
        return table(self.COLUMNS, dates_as_days=True, task="regression")

    def test_the_rows_of_the_fit_are_encoded_as_they_were(self, fitted):
        frame = pd.DataFrame(self.COLUMNS).iloc[:, ::-1]
        found = new_rows(frame, fitted.columns)
        pd.testing.assert_frame_equal(found.inputs, fitted.inputs)
        assert found.numbers.tolist() == [1, 2, 3, 4]
        assert found.notices == []

    def test_from_a_file_in_any_order_beside_others(self, fitted, tmp_path):
        frame = read_frame(stored(tmp_path, self.CSV), text=["hue"])
        found = new_rows(frame, fitted.columns).inputs
        assert found.to_dict("list") == {
            "x": [3, 1],
            "hue=7": [1, 0],
            "hue=blue": [0, 0],
            "flag": [1, 0],
            "when": [18322, 18323],
        }

    def test_numbers_for_text_and_truth(self, fitted):
        frame = pd.DataFrame(self.COLUMNS).iloc[:2].assign(hue=[7, 7.0], flag=[0, 1])
        assert new_rows(frame, fitted.columns).inputs["hue=7"].tolist() == [1, 1]
        assert new_rows(frame, fitted.columns).inputs["flag"].tolist() == [0, 1]

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            (
                {"x": None, "hue": ["blue", None, "red", "red"]},
                "data rows 1, 2, 3, 4 with missing values, in 'x', 'hue'; --skip-unknown leaves"
                " such rows out",
            ),
            (
                {"hue": ["blue", "green", "RED", "green"], "x": [1, 2, None, 3]},
                "data row 3 with missing values, in 'x'; data rows 2, 3, 4 with a level of 'hue'"
                " that the model has not seen: 'green', 'RED'; --skip-unknown leaves such rows out",
            ),
            (
                {"x": ["a", "b", "c", "d"], "flag": ["a", "true", "b", "c"], "when": [1, 2, 3, 4]},
                "column 'x' must hold numbers, got 'a' in data row 1; column 'flag' must hold true"
                " or false, got 'a' in data row 1; column 'when' must hold ISO dates (YYYY-MM-DD), "
                "got 1.0 in data"
                " row 1; correct the cells, or leave them empty and use --skip-unknown",
            ),
            (
                {"when": ["2020-03-01", "19.05.2024", "2020-03-02", "soon"]},
                "column 'when' must hold ISO dates (YYYY-MM-DD), got '19.05.2024' in data row 2;"
                " correct the cells, or leave them empty and use --skip-unknown",
            ),
            (
                {"x": [1, 2, 3, np.inf]},
                "column 'x' has inf in data row 4; correct the cells, or leave them empty and use"
                " --skip-unknown",
            ),
            (
                {"x": DAYS[:2] * 2, "flag": [2, 1, 0, 1]},
                "column 'x' holds dates such as '2020-01-31'; column 'flag' must hold true or"
                " false, got 2.0 in data row 1; correct the cells, or leave them empty and use"
                " --skip-unknown",
            ),
        ],
        ids=["missing", "unseen", "kinds", "other dates", "infinite", "dates"],
    )
    def test_bad_cells(self, fitted, change, expected):
        frame = pd.DataFrame({**self.COLUMNS, **change})
        assert message_of(new_rows, frame, fitted.columns) == expected

    def test_columns_that_are_not_there(self, fitted):
        frame = pd.DataFrame({"x": X, "z": X})
        assert message_of(new_rows, frame, fitted.columns) == (
            "the model needs columns that are not there: 'hue', 'flag', 'when'; the columns are"
            " 'x', 'z'"
        )

    def test_rows_that_are_not_known_can_be_left_out(self, fitted):
        change = {"hue": ["blue", "green", "red", "red"], "x": [1, 2, None, 3]}
        frame = pd.DataFrame({**self.COLUMNS, **change})
        found = new_rows(frame, fitted.columns, skip_unknown=True)
        assert found.numbers.tolist() == [1, 4]
        assert found.inputs["x"].tolist() == [1, 3]
        assert found.inputs.index.tolist() == [0, 1]
        assert len(found.notices) == 2
        frame["x"] = None
        assert message_of(new_rows, frame, fitted.columns, skip_unknown=True).startswith(
            "no row can be forecast: data rows 1, 2, 3, 4 with missing values, in 'x'; "
        )


def test_row_numbers_are_used_and_named():
    shuffled = np.random.default_rng(0).permutation(30) + 1001
    result = table({"id": shuffled, "x": np.linspace(0, 1, 30), "y": range(30)}, task="regression")
    assert list(result.inputs) == ["id", "x"]
    assert result.notices == ("These only number the rows; leave them out with --drop?: 'id'.",)
    assert table({"id": [*shuffled[:29], 2000], "y": range(30)}, task="regression").notices == ()


def test_twenty_texts_are_no_identifier():
    result = table({"c": [f"{i:02}x" for i in range(20)], "y": range(20)})
    assert np.array_equal(result.inputs, np.eye(20)[:, 1:])


def test_half_numbers_are_text():
    result = table({"c": ["1", "a", "1", "a"], "y": range(4)})
    assert list(result.inputs) == ["c=a"]


def test_constant_columns_are_left_out():
    columns = {"x": X, "one": [1, 1, 1], "c": ["a"] * 3, "b": [True] * 3, "y": Y}
    result = table(columns, task="regression")
    assert list(result.inputs) == ["x"]
    assert result.notices == ("Columns left out, the same in every row: 'one', 'c', 'b'.",)


def test_missing_rows_are_dropped_on_request():
    columns = {
        "x": [1.0, None, 3.0, 4.0],
        "c": ["a", "b", "a", "a"],
        "self": ["red", "blue", "green", "red"],
        "n": pd.array([1, 2, 5, 7], dtype="Int64"),
        "y": [0, 1, 1, None],
    }
    frame = pd.DataFrame(columns, index=[7, 7, 8, 9])
    result = table(frame, drop_missing=True)
    assert result.inputs.to_dict("list") == {"x": [1, 3], "self=red": [1, 0], "n": [1, 5]}
    assert result.inputs.index.tolist() == [0, 1]
    assert result.target.tolist() == [0, 1]
    assert result.target.dtype.kind == "i"
    assert result.notices == (
        "Rows left out for missing values: 2 of 4 rows, in 'x' (1), 'y' (1).",
        TWO,
        "Text is compared with its most frequent level: 'self' with 'green'.",
        "Levels of fewer than 5 rows tell little: 'red' of 'self' (1).",
        "Columns left out, the same in every row: 'c'.",
    )
    assert frame.columns.tolist() == list(columns)
    assert frame.index.tolist() == [7, 7, 8, 9]


def test_missing_values_in_dropped_columns_do_not_matter():
    result = table({"x": X, "z": [None, 1, 2], "y": Y}, drop=["z"])
    assert len(result.inputs) == 3


def test_drop_missing_with_nothing_missing_says_nothing():
    assert table({"x": X, "y": Y}, drop_missing=True, task="regression").notices == ()


def test_weights():
    result = table({"x": X, "z": [1, 1, 2], "y": Y, "w": [2, 1, 0]}, weights="w", task="regression")
    assert result.weights.tolist() == [2.0, 1.0, 0.0]
    assert list(result.inputs) == ["x"]
    assert len(result.target) == 3
    assert result.notices == ("Columns left out, the same in every row: 'z'.",)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_separators_line_ends_and_byte_order_mark(separator, line_end, mark, tmp_path):
    rows = [[""], ['"a,;b"', " y"], ["1", '"0.5"'], [""], ["2", " 0.25 "], ["  "], ["4", "0.75"]]
    text = line_end.join(separator.join(row) for row in rows)
    result = from_csv(tmp_path, mark + text, task="regression")
    assert result.inputs.to_dict("list") == {"a,;b": [1, 2, 4]}
    assert result.target.tolist() == [0.5, 0.25, 0.75]
    assert result.notices == ()


def test_suffix_does_not_matter_to_text_nor_to_parquet(tmp_path):
    frame = pd.DataFrame({"x": X, "y": Y})
    text = stored(tmp_path, frame.to_csv(index=False), "data.unknown")
    binary = stored(tmp_path, parquet_bytes(frame), "other.csv")
    assert read_frame(text).equals(frame)
    assert read_frame(str(binary)).equals(frame)


def test_decimal_commas(tmp_path):
    text = "x;w;n;y\n1,5;a,b;1;-,5\n2;c;2;3,25e1\n;d;3;7,\n"
    path = stored(tmp_path, text)
    frame = read_frame(path)
    assert frame["y"].tolist() == [-0.5, 32.5, 7.0]
    result = prepare(frame, "y", name="data", drop_missing=True, task="regression")
    assert result.inputs["x"].tolist() == [1.5, 2.0]
    assert result.notices[0] == "Commas are read as decimal points in 'x', 'y'."


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            "x;y\n1,5;1\n?;2\n2,5;3\n",
            f"column 'x' has text among its numbers: '?' in data row 2; {REPAIR}",
        ),
        (
            "x;y\n1.5;1\n1,5;2\n2.5;3\n",
            f"column 'x' has text among its numbers: '1,5' in data row 2; {REPAIR}",
        ),
        (
            'x,y\n1.5,1\n"1,5",2\n2.5,3\n',
            f"column 'x' has text among its numbers: '1,5' in data row 2; {REPAIR}",
        ),
    ],
    ids=["text among commas", "points and commas", "no semicolons"],
)
def test_decimal_commas_that_are_not_all(text, expected, tmp_path):
    assert message_of(from_csv, tmp_path, text) == expected


def test_without_semicolons_commas_are_no_decimal_points(tmp_path):
    result = from_csv(tmp_path, "x\tz\ty\n1,5\t1\t1\n2,5\t2\t2\n", task="regression")
    assert list(result.inputs) == ["x=2,5", "z"]


LABELS = "The first column, row labels without a name, is left out."


@pytest.mark.parametrize(
    "text, names, notices",
    [
        (",x,y\n0,1,2\n1,3,4\n", ["x"], [LABELS]),
        ('"","x","y"\n"1",1,2\n"2",3,4\n', ["x"], [LABELS]),
        (",x,y\nAnna,1,2\nBert,3,4\n", ["x"], [LABELS]),
        ("Unnamed: 0,x,y\n5,1,2\n3,3,4\n", ["x"], [LABELS]),
        ("id,x,y\n0,1,2\n1,3,4\n", ["id", "x"], []),
        ("x,y,\n1,2,\n3,4,\n", ["x"], ["Empty columns without a name are left out: 1."]),
        (
            "x,y,\n1,2,0\n3,4,1\n",
            ["x", "column 3"],
            ["Columns without a name are named by their place: 'column 3'."],
        ),
        (
            ",x,y\n1,1,2\n1,3,4\n2,5,6\n",
            ["column 1", "x"],
            ["Columns without a name are named by their place: 'column 1'."],
        ),
        (
            ",x,y\n0.5,1,2\n1.5,3,4\n",
            ["column 1", "x"],
            ["Columns without a name are named by their place: 'column 1'."],
        ),
    ],
    ids=[
        "index",
        "from R",
        "names",
        "read twice",
        "named",
        "trailing",
        "last",
        "repeated",
        "floats",
    ],
)
def test_columns_without_a_name(text, names, notices, tmp_path):
    result = from_csv(tmp_path, text, task="regression")
    assert list(result.inputs) == names
    assert list(result.notices) == notices


def test_row_labels_in_parquet(tmp_path):
    frame = pd.DataFrame({"x": X, "y": Y}, index=[4, 2, 9])
    loaded = read_frame(stored_parquet(tmp_path, frame))
    assert loaded.equals(frame.reset_index(drop=True))
    result = prepare(loaded, "y", name="data", task="regression")
    assert result.notices == ("The row labels that pandas had stored are left out.",)


def test_nothing_in_a_file_is_evaluated(tmp_path):
    text = "x,=1+1,y\n1,__import__('os'),1\n2,=HYPERLINK(),2\n"
    result = from_csv(tmp_path, text, task="regression")
    assert list(result.inputs) == ["x", "=1+1=__import__('os')"]


def test_names_with_control_characters_stay_in_one_line(tmp_path):
    text = '"a\nb\x1b[31m",y\n1,2\n3,4\n'
    assert message_of(from_csv, tmp_path, text, target="z") == (
        r"there is no column 'z' for --target; the columns are 'a\nb\x1b[31m', 'y'"
    )


@pytest.mark.parametrize("token", ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", " "])
def test_what_counts_as_missing(token, tmp_path):
    text = f"x,c,y\n1,a,1\n{token},{token},2\n3,b,3\n"
    assert message_of(from_csv, tmp_path, text) == (
        "1 of 3 rows have missing values, in 'x' (1), 'c' (1); leave the rows out with"
        f" --drop-missing or the columns with --drop {MISSING}"
    )


@pytest.mark.parametrize("token", ["missing", "-", "?", "0"])
def test_what_does_not_count_as_missing(token, tmp_path):
    assert "c=b" in from_csv(tmp_path, f"c,y\na,1\n{token},2\nb,3\n").inputs


@pytest.mark.parametrize("column", ["x", "y"])
@pytest.mark.parametrize("size", [-1.5e308, 2e-60])
def test_columns_whose_squares_overflow_or_vanish_are_refused(column, size):
    values = {"x": [1.0, 2.0, 4.0], "y": [3.0, 1.0, 2.0]}
    values[column] = [0.0, size, size / 2]
    expected = (
        f"column {column!r} must be 0 or between 1e-50 and 1e+50 in size, got at most "
        f"{abs(size):.3g}; change its unit, or leave it out with --drop"
    )
    assert message_of(prepare, pd.DataFrame(values), "y", name="data") == expected


@pytest.mark.parametrize(("sign", "shown"), [("", "inf"), ("-", "-inf")])
def test_whole_numbers_of_too_many_digits_are_refused(sign, shown, tmp_path):
    rows = "".join(f"{sign}{10**400 + k},{k}\n" for k in range(4))
    frame = read_frame(stored(tmp_path, f"x,y\n{rows}"))
    assert message_of(prepare, frame, "y", name="data").startswith(
        f"column 'x' has {shown} in data row 1; correct it, "
    )


def test_numbers_that_overflow_are_refused(tmp_path):
    message = message_of(from_csv, tmp_path, "x,y\n1,1\n1e999,2\n3,3\n")
    assert message.endswith(f" in data row 2; {REPAIR}")  # infinite or text: pandas decides


def test_integers_beyond_64_bits(tmp_path):
    result = from_csv(tmp_path, f"x,y\n{10**30},1\n2,2\n{2**63},4\n")
    assert result.inputs["x"].tolist() == [1e30, 2.0, 2.0**63]


MIXED = pd.DataFrame(
    {
        "number": [0.1, 1 / 3, None, -0.0, 5e-324, 1.7976931348623157e49],
        "whole": [1, 2, 3, 4, 5, 2**53 + 1],
        "flag": [True, False, True, True, False, False],
        "flag with gap": [True, None, False, True, False, False],
        "text": ["b", "a", "c", None, "b", "ä"],
        "digits": ["10", "2", "3", "4", "0.1", "7"],
        "category": pd.Categorical(["u", "v", "u", "v", "v", "u"], categories=["v", "u", "w"]),
        "coded": pd.Categorical([3, 1, 2, 1, 2, 3]),
        "nullable": pd.array([1, 2, None, 4, 5, 6], dtype="Int64"),
        "decimal": [decimal.Decimal(text) for text in ("0.1", "2.5", "3.3", "1.1", "0.7", "9.9")],
        "y": ["p", "q", "p", "q", "q", "p"],
    }
)


@pytest.mark.parametrize("target", ["y", "whole", "flag", "category"])
def test_csv_parquet_and_frame_agree(target, tmp_path):
    csv = read_frame(stored(tmp_path, MIXED.to_csv(index=False)))
    binary = read_frame(stored_parquet(tmp_path, MIXED))
    first, *others = (
        prepare(frame, target, name="data", drop_missing=True) for frame in (csv, binary, MIXED)
    )
    assert len(first.inputs) == 3
    for other in others:
        pd.testing.assert_frame_equal(first.inputs, other.inputs, check_exact=True)
        assert first.target.tolist() == other.target.tolist()
        assert first.target.dtype.kind == other.target.dtype.kind
        assert first.notices == other.notices


FINITE = st.floats(-1e50, 1e50)
ROWS = st.lists(st.tuples(FINITE, FINITE, st.integers(-(2**53), 2**53)), min_size=3, max_size=20)


@settings(deadline=None)
@given(rows=ROWS, separator=st.sampled_from([",", ";", "\t"]))
def test_floats_survive_text_to_the_last_bit(rows, separator, tmp_path_factory):
    rows = [*rows, (0.25, 0.25, 0), (0.5, 0.5, 1), (0.75, 0.75, 2)]
    frame = pd.DataFrame(rows, columns=["a", "b", "y"])
    path = tmp_path_factory.getbasetemp() / "round-trip.csv"
    frame.to_csv(path, index=False, sep=separator)
    result = prepare(read_frame(path), "y", name="data", task="regression")
    given_bits = frame[["a", "b"]].to_numpy().view(np.int64)
    assert np.array_equal(result.inputs.to_numpy().view(np.int64), given_bits)
    assert np.array_equal(result.target, frame["y"].to_numpy(dtype=float))


@settings(deadline=None)
@given(rows=st.lists(FINITE, max_size=20))
def test_floats_survive_decimal_commas_to_the_last_bit(rows, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "commas.csv"
    frame = pd.DataFrame({"x": [*rows, 0.5, 0.25], "y": range(len(rows) + 2)})
    frame.to_csv(path, index=False, sep=";", decimal=",")
    result = prepare(read_frame(path), "x", name="data", task="regression")
    assert np.array_equal(result.target.view(np.int64), frame["x"].to_numpy().view(np.int64))


@settings(deadline=None)
@given(content=st.binary(max_size=60))
def test_any_bytes_are_a_table_or_one_line(content, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "bytes.csv"
    path.write_bytes(content)
    a_table_or_one_line(path)


@settings(deadline=None)
@given(text=st.text(alphabet='ab01.,;\t\n\r" =-+e_N', max_size=60))
def test_any_text_is_a_table_or_one_line(text, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "text.csv"
    path.write_bytes(text.encode())
    a_table_or_one_line(path)


def a_table_or_one_line(path):
    try:
        frame = read_frame(path)
        result = prepare(frame, frame.columns[-1], name="data", drop_missing=True)
    except TableError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert np.isfinite(result.inputs.to_numpy()).all()
        assert len(result.inputs) == len(result.target) > 1


@pytest.mark.slow
def test_a_million_cells_take_no_time(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((50_000, 20))).add_prefix("x")
    frame["c"] = rng.choice(["a", "b", "c"], len(frame))
    path = stored(tmp_path, frame.to_csv(index=False))
    begin = time.perf_counter()
    result = prepare(read_frame(path), "x0", name="data")
    assert time.perf_counter() - begin < 10
    assert result.inputs.shape == (50_000, 21)


def test_diabetes():
    result = prepare(diabetes(), "progression", name="diabetes")
    assert (result.name, result.target_name, result.task) == (
        "diabetes",
        "progression",
        "regression",
    )
    assert list(result.inputs) == ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]
    assert result.inputs.iloc[0].tolist() == [59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.8598, 87]
    assert (len(result.target), result.target[0]) == (442, 151.0)
    assert result.notices == ("The target, 'progression', is numeric: this is a regression.",)


def test_import_is_light():
    check = (
        "import sys, temperance.app.tables.table;"
        "sys.exit(' '.join({'pandas', 'pyarrow', 'sklearn'} & sys.modules.keys()) or None)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)
