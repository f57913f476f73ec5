"""NHANES 2003-2006: who becomes a client, the labels, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from curvote.data.public import nhanes_2003
from curvote.data.public.nhanes_2003 import BINS, FILE, Parameters
from curvote.data.raw_files import read
from tests.nhanes_table import person, text
from tests.real_files import MIRROR, needs_mirror

NO_ACTIVITY = dict.fromkeys(BINS, "")


PEOPLE = [
    person(1, "Female", 30, 50),
    person(2, "Female", 55.5, 49),
    person(3, "Female", 70, ""),
    person(4, "Female", 40, 60, **NO_ACTIVITY),
    person(5, "Male", 33, 40),
    person(6, "Male", 44, 39),
    person(7, "Male", 60, "", **NO_ACTIVITY),
]


def _write(folder: Path, people: list[str]) -> dict[str, Path]:
    path = folder / "table.csv"
    path.write_text(text(people))
    return {FILE: path}


@pytest.mark.parametrize(
    ("given", "ids", "labels", "dropped"),
    [
        ({}, [1, 2], [1, 0], {"HDL": 1, "activity": 1}),
        ({"minimum_age": 50}, [2], [0], {"HDL": 1, "activity": 0}),
        ({"sex": "male"}, [5, 6], [1, 0], {"HDL": 1, "activity": 1}),
        ({"sex": "both"}, [1, 2, 5, 6], [1, 0, 1, 0], {"HDL": 2, "activity": 2}),
    ],
)
def test_each_sex_has_its_threshold(tmp_path, given, ids, labels, dropped):
    """From 50 mg/dL (women) or 40 (men) HDL is healthy; the incomplete are counted."""
    paths = _write(tmp_path, PEOPLE)
    columns = nhanes_2003.clients(Parameters(**given), paths)
    facts = json.loads(json.dumps(nhanes_2003.facts(Parameters(**given), paths)))
    assert columns["client_id"].tolist() == ids
    assert columns["label"].tolist() == labels
    assert facts["missing"]["counts"] == dropped
    assert facts["rows"] == len(ids) == sum(facts["counts"].values())
    assert facts["counts"]["healthy HDL"] == sum(labels)


def test_a_curve_is_the_twelve_bins(tmp_path: Path) -> None:
    """In the order of the day, on the centres of the bins, within public bounds."""
    paths = _write(tmp_path, PEOPLE)
    columns = nhanes_2003.clients(Parameters(), paths)
    facts = nhanes_2003.facts(Parameters(), paths)
    assert columns["curve"][0].tolist() == [100 * i + 1 for i in range(12)]
    assert facts["grid"] == [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23]
    assert [facts["grid"][0], facts["grid"][-1]] == facts["domain"]
    assert facts["bounds"]["upper"] == pytest.approx(1247.665, abs=1e-3)
    assert facts["bounds"]["lower"] == 0


@pytest.mark.parametrize(
    ("people", "message"),
    [
        ([person(1, "female", 40, 50)], "line 2 'female'"),
        ([person(1, "Female", 29, 50)], "age, impossible"),
        ([person(1, "Female", 40, 50, **{"tlac.3": -1})], r"tlac\.3, impossible"),
        ([person(1, "Female", 40, 50, **{"tlac.3": 1300})], r"tlac\.3, impossible"),
        ([PEOPLE[0], PEOPLE[0]], r"repeat a participant.*\[3\]"),
        ([person(1, "Female", 40, "")], "nobody is left: sex female"),
        ([PEOPLE[0] + ",1"], "line 2 has 26"),
    ],
)
def test_wrong_tables_are_refused(tmp_path, people, message):
    """The message names the line and the column."""
    with pytest.raises(UserError, match=message):
        nhanes_2003.clients(Parameters(), _write(tmp_path, people))


def test_a_lost_row_is_noticed(tmp_path: Path) -> None:
    """Another number of rows is another edition."""
    data = _write(tmp_path, PEOPLE)[FILE].read_bytes()
    source = raw_files.find(FILE)
    nhanes_2003.check(data, replace(source, rows=7))
    with pytest.raises(UserError, match="7 rows instead of 8"):
        nhanes_2003.check(data, replace(source, rows=8))


@needs_mirror
def test_the_real_table_is_as_described() -> None:
    """5742 adults are complete, 1503 with low HDL; no value leaves its bounds."""
    path = Path(str(MIRROR)) / "nhanes_2003_2006_activity_2h.csv.gz"
    nhanes_2003.check(read(path), raw_files.find(FILE))
    both = nhanes_2003.facts(Parameters(sex="both"), {FILE: path})
    assert both["counts"] == {"low HDL": 1503, "healthy HDL": 4239}
    assert both["missing"]["counts"] == {"HDL": 270, "activity": 708}
    columns = nhanes_2003.clients(Parameters(), {FILE: path})
    assert np.bincount(columns["label"]).tolist() == [827, 2077]
    assert columns["curve"].shape == (2904, 12)
    asked = Parameters(sex="both", target="hdl_mg_dl")
    hdl = nhanes_2003.clients(asked, {FILE: path})["target"]
    assert len(hdl) == 5742
    assert np.mean((hdl < 20) | (hdl > 120)) < 0.002
    assert 0 <= columns["curve"].min() < columns["curve"].max() < nhanes_2003.UPPER


def test_hdl_itself_may_be_learnt(tmp_path: Path) -> None:
    """From age, sex and the bins; what a label is stays as it was."""
    paths = _write(tmp_path, PEOPLE)
    asked = Parameters(sex="both", target="hdl_mg_dl")
    told, plain = (
        nhanes_2003.clients(each, paths) for each in (asked, Parameters(sex="both"))
    )
    assert told["target"].tolist() == [50, 49, 40, 39]
    assert told["curve"][:, :2].tolist() == [[30, 1], [55.5, 1], [33, 0], [44, 0]]
    assert np.array_equal(told["curve"][:, 2:], plain["curve"])
    assert np.array_equal(told["label"], plain["label"])
    assert "target" not in plain
    facts = nhanes_2003.facts(asked, paths)
    assert (facts["target"]["lower"], facts["target"]["upper"]) == (20, 120)
    assert len(facts["features"]) == nhanes_2003.width(asked) == 14
    assert "target" not in nhanes_2003.facts(Parameters(), paths)
