"""The promises of a user's own table: public bounds, policies, formats, refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from curvote.base.errors import UserError
from curvote.data.tables import table
from curvote.data.tables.cells import SPELT

GIVEN: dict[str, Any] = {
    "path": "people.csv",
    "label": "outcome",
    "positive": "ill",
    "features": ["age", "weight"],
    "bounds": {"age": [0, 100], "weight": [20, 220]},
}
ROWS = """person,age,note,weight,outcome
p3,41,a,70.5,ill
p1,30,b,,well
p2,41,c,70.5,ill
p7,NA,d,1e2,well
p5,55,e, 60 ,ill
"""
HEADER, *LINES = ROWS.splitlines()
WRONG = """person,age,note,weight,outcome
p3,41,a,inf,
p3,thirty,b,7O,well
p2,41,c,70.5,ill
,NA,d,1e2,well
p5,55,e,60,unwell
"""
FORMATS = ["people.csv", "people.csv.gz", "people.parquet"]


def parameters(**changes: Any) -> table.Parameters:
    """Return the parameters of the table above with some of them changed."""
    return table.Parameters.model_validate(GIVEN | changes)


def write(folder: Path, name: str = "people.csv", text: str = ROWS) -> dict[str, Path]:
    """Write the table as the ending says; Parquet gets numbers where it can."""
    path = folder / name
    if name == "people.csv":
        path.write_text(text)
        return {"path": path}
    lines = [line.split(",") for line in text.splitlines()]
    frame = pd.DataFrame(lines[1:], columns=lines[0])
    if name.endswith(".parquet"):
        numbers = {
            x: pd.to_numeric(frame[x], errors="coerce") for x in ("age", "weight")
        }
        frame.assign(**numbers).to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False)
    return {"path": path}


def problems(folder: Path, text: str, **changes: Any) -> list[str]:
    """Return everything that is said about a table."""
    paths = write(folder, text=text)
    with pytest.raises(UserError) as error:
        table.clients(parameters(**changes), paths)
    prefix = f"{paths['path']}: "
    return [problem.message.removeprefix(prefix) for problem in error.value.problems]


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_gives_the_same_clients(tmp_path: Path, name: str) -> None:
    """Missing cells get the public centre; ids are rows; other columns are left."""
    found = table.clients(parameters(duplicates="keep"), write(tmp_path, name))
    assert found["client_id"].tolist() == [1, 2, 3, 4, 5]
    assert found["label"].tolist() == [1, 0, 1, 0, 1]
    assert found["group"].tolist() == [0, 1, 2, 3, 4]
    ages, weights = found["curve"].T.tolist()
    assert ages == [41, 30, 41, 50, 55]
    assert weights == [70.5, 120, 70.5, 100, 60]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("duplicates", "missing", "ids"),
    [
        ("distinct", "centre", [1, 2, 4, 5]),
        ("keep", "drop", [1, 3, 5]),
        ("distinct", "drop", [1, 5]),
    ],
)
def test_policies_choose_rows_and_are_counted(tmp_path, name, duplicates, missing, ids):
    """Facts hold the policy and both counts, and agree with the clients."""
    given = parameters(duplicates=duplicates, missing=missing)
    paths = write(tmp_path, name)
    facts = table.facts(given, paths)
    assert table.clients(given, paths)["client_id"].tolist() == ids
    assert facts["rows"] == len(ids) == sum(facts["counts"].values())
    assert facts["duplicates"] == {"policy": duplicates, "rows": 5, "distinct": 4}
    assert facts["missing"] == {"policy": missing, "counts": {"age": 1, "weight": 1}}


def test_missing_values_cannot_be_kept(tmp_path: Path) -> None:
    """An empty cell is no number; the message counts them."""
    with pytest.raises(UserError, match="age 1, weight 1"):
        table.clients(parameters(missing="keep"), write(tmp_path))


def test_facts_state_the_users_bounds(tmp_path: Path) -> None:
    """Bounds, classes and the unit of privacy, in the order of the features."""
    given = parameters(features=["weight", "age"])
    facts = table.facts(given, write(tmp_path))
    ends = [(f["name"], f["lower"], f["upper"]) for f in facts["features"]]
    assert ends == [("weight", 20, 220), ("age", 0, 100)]
    assert (facts["classes"], facts["grid"]) == (["well", "ill"], [0, 1])
    assert any("unit of privacy is one row" in note for note in facts["notes"])


@pytest.mark.parametrize("name", FORMATS)
def test_ids_of_a_column_are_stable(tmp_path: Path, name: str) -> None:
    """A client's id does not depend on format, order or policies."""
    given = parameters(id="person", duplicates="keep")
    found = table.clients(given, write(tmp_path, name))
    turned = "\n".join([HEADER, *reversed(LINES), ""])
    again = table.clients(given, write(tmp_path, text=turned))
    assert found["client_id"].tolist() == again["client_id"].tolist()[::-1]
    assert len({*found["client_id"].tolist()}) == 5
    numbered = write(tmp_path, text=ROWS.replace("\np", "\n"))
    assert table.clients(given, numbered)["client_id"].tolist() == [3, 1, 2, 7, 5]


def test_everything_is_reported_at_once(tmp_path: Path) -> None:
    """Each kind with its count and rows: numbers, labels, ids."""
    labels = "needs two labels, one of them 'ill'; it has (3): 'ill', 'unwell', 'well'"
    labels += ", with more than two, write classes: [a, b, c] instead of positive"
    assert {*problems(tmp_path, WRONG, id="person")} == {
        "outcome is empty (1): line 2.",
        f"column 'outcome' {labels}.",
        "age is not a finite number (1): line 3 'thirty'.",
        "weight is not a finite number (2): line 2 'inf', line 3 '7O'.",
        "person is empty (1): line 5.",
        f"person repeats an earlier one{SPELT} (1): line 3 'p3'.",
    }


def test_at_most_ten_examples_are_shown(tmp_path: Path) -> None:
    """The others are counted."""
    many = ROWS + "p,old,x,60,ill\n" * 25
    (found,) = problems(tmp_path, many)
    assert found.startswith("age is not a finite number (25): line 7 'old'")
    assert found.count("'old'") == 10
    assert found.endswith("and 15 more.")


@pytest.mark.parametrize(
    ("text", "changes", "message"),
    [
        (ROWS, {"positive": "sick"}, "one of them 'sick'; it has (2): 'ill', 'well'"),
        (ROWS.replace("well", "ill"), {}, "needs two labels"),
        (
            ROWS.replace("ill", "Ill"),
            {},
            "'Ill', 'well', so write positive: \"Ill\", in quotes",
        ),
        (
            ROWS + 'p9,"2,5",,60,ill\n',
            {},
            "'2,5'. Numbers with decimal commas: write decimal: \",\"",
        ),
        (ROWS + "p9,30.3.2026,,60,ill\n", {}, "'30.3.2026'. Day first: "),
        (ROWS.replace("weight", "wheight"), {}, "Did you mean 'wheight'"),
        (HEADER + "\n", {}, "has no rows"),
        (ROWS + "p9,1,2\n", {}, "lines without 5 fields (1): line 7 has 3"),
    ],
)
def test_other_faults_are_named(tmp_path, text, changes, message):
    """Labels, columns, rows and lengths: what was found and what would be right."""
    assert message in "\n".join(problems(tmp_path, text, **changes))


def test_a_column_of_dates_is_no_feature(tmp_path: Path) -> None:
    """The message names the column and its type."""
    path = tmp_path / "dates.parquet"
    frame = pd.DataFrame({"age": [1, 2], "outcome": ["ill", "well"]})
    frame.assign(weight=pd.Timestamp("2024-01-01")).to_parquet(path, index=False)
    with pytest.raises(UserError, match=r"column 'weight' \(timestamp"):
        table.clients(parameters(), {"path": path})


@pytest.mark.parametrize("labels", [[1, 0], [1.0, 0.0], [True, False]])
@pytest.mark.parametrize("positive", ["yaml", "text"])
def test_labels_of_any_type_are_named(tmp_path, labels, positive):
    """1, 1.0 and true of YAML are the file's 1, 1.0 and true; so are their texts."""
    path = tmp_path / "labels.parquet"
    frame = pd.DataFrame({"age": [1, 2], "weight": [50, 60], "outcome": labels})
    frame.to_parquet(path, index=False)
    name = {"True": "true", "1.0": "1"}.get(str(labels[0]), "1")
    given = parameters(positive=labels[0] if positive == "yaml" else name)
    assert table.clients(given, {"path": path})["label"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bounds": {}}, "there are none for: age, weight"),
        ({"bounds": {"age": [0, 1]}}, "there are none for: weight"),
        ({"bounds": GIVEN["bounds"] | {"size": [0, 1]}}, "no feature: size"),
        ({"bounds": {"age": [5, 5], "weight": [2, 1]}}, "second: age, weight"),
        ({"bounds": GIVEN["bounds"] | {"age": [0, np.inf]}}, "finite"),
        ({"features": ["age", "age"]}, "named twice: age"),
        ({"features": ["age", "weight", "outcome"]}, "named twice: outcome"),
        ({"id": "outcome"}, "another column"),
        ({"id": "age"}, "another column"),
        ({"features": []}, "at least 1"),
        ({"header": False}, "header"),
    ],
)
def test_wrong_parameters_are_refused(changes: dict[str, Any], message: str) -> None:
    """All features without public bounds are listed; nothing unknown is accepted."""
    with pytest.raises(ValidationError, match=message):
        parameters(**changes)
