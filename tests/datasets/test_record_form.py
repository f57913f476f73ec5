"""The form of an owner's file and label: told to the owner, before anything else."""

import json
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.client.table import read_record
from tests.valid_tasks import document, tasks


def test_a_label_outside_the_classes_is_told_before_the_file_is_opened() -> None:
    """To the owner alone; the file need not even be there."""
    task = tasks()["mrma-report-0"]
    with pytest.raises(UserError, match="Known: no, yes"):
        read_record(Path("nowhere.csv"), "male", task)


def test_the_form_of_a_file_is_told_its_values_are_not(tmp_path: Path) -> None:
    """Missing, infinite and too large numbers are values, in one row or one column."""
    task = tasks()["mrma-report-3"]
    task = replace(task, encoding=tasks()["mrma-report-16"].encoding)
    assert task.encoding.d == 3
    path = tmp_path / "curve.csv"
    for text, found in {
        "1,,3\n": [1, np.nan, 3],
        "a,b,c\n1,NA,1e999\n": [1, np.nan, np.inf],
        "1\n\n-inf\n": [1, np.nan, -np.inf],
        "t\nnull\n2\n\n": [np.nan, 2, np.nan],
        "1,2,3\n\n\n": [1, 2, 3],
        "\ufeff1,2, 3\n": [1, 2, 3],
        "1\n2\n3\n\n\n": [1, 2, 3],
        "9" * 400 + "\n1\n2\n": [np.inf, 1, 2],
        ",,\n": [np.nan] * 3,
    }.items():
        path.write_text(text, encoding="utf-8")
        given = read_record(path, "yes", task)
        assert np.array_equal(given.values, found, equal_nan=True), text
    for text in ("1,2\n", "1,2,x\n", "1,2,3\n4,5\n", "", "\n", "1;2;3\n", "1,2,3x\n"):
        path.write_text(text)
        with pytest.raises(UserError, match=r"curve\.csv"):
            read_record(path, "yes", task)
    path.write_bytes(b"\xff\xfe1,2,3")
    with pytest.raises(UserError, match="no such table"):
        read_record(path, "yes", task)


def test_a_parquet_file_is_read_in_the_same_form(tmp_path: Path) -> None:
    """Nulls are missing values, of every kind of column; words are no numbers."""
    task = replace(
        tasks()["mrma-report-3"], encoding=tasks()["mrma-report-16"].encoding
    )
    path = tmp_path / "curve.parquet"
    for values in (
        [1.0, None, np.inf],
        pd.array([1, None, 3], dtype="Int64"),
        [Decimal(1), Decimal("NaN"), None],
        ["1", "", "1e999"],
    ):
        pd.DataFrame({"v": values}).to_parquet(path)
        given = read_record(path, "yes", task)
        assert given.values[0] == 1
        assert np.isnan(given.values[1])
    for wrong in (["1", "a", "2"], [[1], [2], [3]], pd.to_datetime(["2020"] * 3)):
        pd.DataFrame({"v": wrong}).to_parquet(path)
        with pytest.raises(UserError, match="is no number"):
            read_record(path, "yes", task)
    path.write_bytes(b"PAR1")
    with pytest.raises(UserError, match="no such table"):
        read_record(path, "yes", task)


def test_a_client_loads_no_heavy_library(tmp_path: Path) -> None:
    """To judge a task of functions and answer it: neither scikit-fda nor pandas."""
    (tmp_path / "task.json").write_text(json.dumps(document(tasks()["mrma-report-0"])))
    (tmp_path / "curve.csv").write_text("1\n" * 12)
    code = (
        "import json, sys; from pathlib import Path;"
        " from curvote.client.table import read_record;"
        " from curvote.base.entropy import SystemEntropy;"
        " from curvote.messages.answer import answer_task;"
        " from curvote.messages.answer import validate_task;"
        " task = validate_task(json.loads(Path('task.json').read_text()));"
        " given = read_record(Path('curve.csv'), 'yes', task);"
        " answer_task(task, given, None, SystemEntropy()); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {"skfda", "pandas", "pyarrow", "sklearn", "matplotlib", "prefect", "mlflow"}
    assert not heavy & set(done.stdout.split())
