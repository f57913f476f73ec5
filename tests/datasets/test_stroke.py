"""Stroke prediction: codes, gaps and ids, and the copies that are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from curvote.data.public.published_tables import STROKE
from curvote.data.raw_files import read
from tests.real_files import needs_mirror

HEADER = ["id", *STROKE.schema.names, "stroke"]
INVENTED = "7,Male,54,0,1,Yes,Private,Rural,101.5,27.3,smokes,0"
PERSON = dict(zip(HEADER, INVENTED.split(","), strict=True))


def line(**changed: str) -> str:
    """Return one invented person as the file spells it."""
    return ",".join((PERSON | changed).values())


def text(*lines: str) -> str:
    """Return a file of ``lines``: the published header, no final newline."""
    return "\n".join([",".join(HEADER), *lines])


def write(folder: Path, *lines: str) -> dict[str, Path]:
    """Write a file of ``lines``; return its path by source name."""
    path = folder / "stroke.csv"
    path.write_text(text(*lines))
    return {"stroke": path}


def load(paths: dict[str, Path], **said: Any) -> dict[str, Any]:
    """Return the clients of the file."""
    return STROKE.clients(STROKE.Parameters(**said), paths)


def test_text_becomes_alphabetical_codes(tmp_path: Path) -> None:
    """Capitals come first; 'Unknown' smoking and 'Other' gender are categories."""
    other = line(
        id="3",
        gender="Other",
        work_type="children",
        smoking_status="Unknown",
        age="0.32",
        stroke="1",
    )
    clients = load(write(tmp_path, line(), other))
    assert clients["curve"].tolist() == [
        [1, 54, 0, 1, 1, 2, 0, 101.5, 27.3, 3],
        [2, 0.32, 0, 1, 1, 4, 0, 101.5, 27.3, 0],
    ]
    assert clients["label"].tolist() == [0, 1]
    assert clients["client_id"].tolist() == [7, 3]
    assert clients["group"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("missing", "ids", "masses"),
    [("centre", [7, 8], [27.3, 25.0]), ("drop", [7], [27.3])],
)
def test_the_body_mass_index_may_be_missing(
    tmp_path: Path, missing: str, ids: list[int], masses: list[float]
) -> None:
    """N/A is filled with the public centre or its row left out, and counted."""
    paths = write(tmp_path, line(), line(id="8", bmi="N/A"))
    clients = load(paths, missing=missing)
    assert clients["client_id"].tolist() == ids
    assert clients["curve"][:, 8].tolist() == masses
    said = STROKE.Parameters.model_validate({"missing": missing})
    facts = STROKE.facts(said, paths)
    assert facts["missing"]["counts"]["bmi"] == 1
    assert facts["rows"] == len(ids)


def test_a_missing_value_cannot_be_kept(tmp_path: Path) -> None:
    """There is no number to keep; the message says how many cells there are."""
    paths = write(tmp_path, line(), line(id="8", bmi="N/A"))
    with pytest.raises(UserError, match="bmi 1"):
        load(paths, missing="keep")


def test_the_id_tells_no_rows_apart(tmp_path: Path) -> None:
    """Rows that differ in their ids alone repeat; both counts are stated."""
    paths = write(tmp_path, line(), line(id="8"), line(id="9", age="55"))
    assert load(paths)["client_id"].tolist() == [7, 9]
    assert load(paths, duplicates="keep")["client_id"].tolist() == [7, 8, 9]
    facts = json.loads(json.dumps(STROKE.facts(STROKE.Parameters(), paths)))
    assert facts["duplicates"] == {"policy": "distinct", "rows": 3, "distinct": 2}


def test_a_report_states_the_base_rate(tmp_path: Path) -> None:
    """One of four: saying 'no stroke' to all is right for 75 %."""
    ages = [line(id=str(i), age=str(i), stroke=str(int(i == 1))) for i in range(1, 5)]
    facts = STROKE.facts(STROKE.Parameters(), write(tmp_path, *ages))
    assert facts["counts"] == {"no stroke": 3, "stroke": 1}
    assert any("1 of 4" in note and "75.0%" in note for note in facts["notes"])
    assert all(feature["why"] for feature in facts["features"])
    assert facts["grid"] == list(range(10))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (line(id="8", bmi="2000.2"), "bmi, impossible (outside 5 to 260): 1 (line 3"),
        (line(id="8", age="-1"), "age, impossible (outside 0 to 125): 1 (line 3 '-1')"),
        (line(id="8", gender="male"), "gender, not one of Female, Male, Other"),
        (line(id="8", smoking_status=""), "only bmi has gaps; here smoking_status 1"),
        (line(id="8", hypertension="0.5"), "hypertension, not a whole number"),
        (line(id="8", stroke="2"), "stroke, not one of 0, 1: 1 (line 3 '2')"),
        (line(id="8", bmi="high"), "bmi, not a number: 1 (line 3 'high')"),
        (line(), "column id: 1 values are repeated or no whole number"),
        (line(id="x"), "the first on line 3: 'x'"),
        (line(id="8", stroke="1"), "wrong counts: 0 1 instead of 2"),
        (line(id="8") + "\n" + line(id="9"), "3 rows instead of 2"),
        (line(id="8")[:30], "rows without 12 fields"),
    ],
)
def test_an_altered_copy_is_refused(bad: str, message: str) -> None:
    """The message names the line, the column and what stands there."""
    source = replace(raw_files.find("stroke"), rows=2, counts={"0": 2})
    STROKE.check(text(line(), line(id="8")).encode(), source)
    with pytest.raises(UserError) as error:
        STROKE.check(text(line(), bad).encode(), source)
    assert message in str(error.value)


def test_only_the_body_mass_index_may_have_a_gap() -> None:
    """An empty cell is a gap as N/A is; any other column, or a renamed one, is not."""
    source = replace(raw_files.find("stroke"), rows=1, counts={"0": 1})
    STROKE.check(text(line(bmi="")).encode(), source)
    gaps = line(avg_glucose_level="N/A", age="")
    with pytest.raises(UserError, match="here age 1, avg_glucose_level 1"):
        STROKE.check(text(gaps).encode(), source)
    with pytest.raises(UserError, match="columns that are missing: 1"):
        STROKE.check(text(line()).replace("bmi", "BMI").encode(), source)


@needs_mirror
def test_the_real_file_is_as_published(tmp_path: Path) -> None:
    """5110 persons, 249 strokes, 201 without BMI, 1544 unknown smokers, one Other."""
    found = raw_files.locate(tmp_path, "stroke", download=False)
    assert found
    STROKE.check(read(found.path), raw_files.find("stroke"))
    paths = {"stroke": found.path}
    clients = load(paths)
    assert np.bincount(clients["label"]).tolist() == [4861, 249]
    assert len(np.unique(clients["client_id"])) == 5110
    assert (clients["curve"][:, 9] == 0).sum() == 1544
    assert (clients["curve"][:, 0] == 2).sum() == 1
    facts = STROKE.facts(STROKE.Parameters(), paths)
    assert facts["missing"]["counts"]["bmi"] == 201
    assert facts["duplicates"]["distinct"] == 5110
    assert any("95.1%" in note for note in facts["notes"])
    assert STROKE.size(STROKE.Parameters()) == len(clients["label"])
    kept = load(paths, missing="drop")["label"]
    assert STROKE.size(STROKE.Parameters(missing="drop")) == len(kept) == 4909
