"""`curvote check`: the card of a user's file, against counts by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.data.lookup import find_dataset, is_remote
from curvote.data.registry import DATASETS
from curvote.data.tables import curves, table
from curvote.data.tables.card import FileCard
from curvote.pipeline.config.file import PipelinesFile, user_file_card
from curvote.pipeline.config.project import Project
from tests import long_file, plain
from tests.datasets.test_own_data import STUDY, TABLE

GIVEN: dict[str, Any] = {
    "path": "people.csv",
    "label": "outcome",
    "positive": "ill",
    "features": ["age", "dose", "flat"],
    "bounds": {"age": [0, 100], "dose": [0, 1], "flat": [0, 9]},
}
ROWS = pd.DataFrame(
    {
        "age": [1.0, 2.0, -1.0, 101.0, 102.0, 1.0],
        "dose": [0.51, 0.52, np.nan, 0.53, 0.54, 0.51],
        "flat": [3.0] * 6,
        "outcome": ["ill", "well", "ill", "well", "well", "ill"],
    }
)


def card(folder: Path, rows: pd.DataFrame = ROWS, **changes: object) -> FileCard:
    """Return the card of a table."""
    rows.to_csv(folder / "people.csv", index=False)
    parameters = table.Parameters.model_validate(GIVEN | changes)
    return table.examined(parameters, {"path": folder / "people.csv"})


def test_every_source_of_ones_own_has_a_card() -> None:
    """Whatever source says that its file is the user's and holds all of a record."""
    sources = {
        name: find_dataset(name) for name in DATASETS if not is_remote({"name": name})
    }
    given = [name for name in sources if getattr(sources[name], "USER_FILE", False)]
    assert {"table", "curves"} <= {*given}
    assert all(hasattr(sources[name], "examined") for name in given)


def test_a_table_is_counted_by_column(tmp_path: Path) -> None:
    """Values on each side of the bounds, missing ones, repeats, classes."""
    found = card(tmp_path)
    age, dose, flat = found.columns
    assert (age.below, age.above, age.missing, age.values) == (1, 2, 0, 5)
    assert (dose.below, dose.above, dose.missing, dose.values) == (0, 0, 1, 4)
    assert (found.rows, found.clients, found.repeats) == (6, 5, 1)
    assert dict(found.classes) == {"well": 3, "ill": 2}
    assert flat.constant
    assert not age.constant
    assert found.filled == 1
    json.dumps(found.to_json())


def test_what_is_odd_is_said(tmp_path: Path) -> None:
    """Far values, narrow ones, one value, few clients of a class."""
    said = " ".join(card(tmp_path).remarks())
    assert "age: 60.0 % of its values lie beyond its bounds [0, 100]" in said
    assert "dose: all its values lie in a tenth of its bounds [0, 1]" in said
    assert "flat holds one value only" in said
    assert "only 2 clients are 'ill'" in said


def test_one_line_says_what_befell_the_values(tmp_path: Path) -> None:
    """By the policies of the source; nothing is said of a file as it should be."""
    assert card(tmp_path).summary_line() == (
        "people.csv: 1 missing value filled with the public centre; 3 of 14 values"
        " beyond their bounds (age); 1 repeated record left out"
    )
    dropped = card(tmp_path, missing="drop", duplicates="keep").summary_line()
    assert dropped is not None
    assert dropped.endswith("1 repeated record kept; 1 left out: a value is missing")
    assert card(tmp_path, ROWS.iloc[:2]).summary_line() is None


def test_no_card_tells_where_values_end(tmp_path: Path) -> None:
    """Bounds fitted to a card would tell of somebody: values stay in their tenth."""
    moved = ROWS.assign(dose=ROWS.dose + 0.011)
    assert card(tmp_path, moved).to_json() == card(tmp_path).to_json()


def test_all_that_is_wrong_is_still_an_error(tmp_path: Path) -> None:
    """A card is of a file that a run would take."""
    with pytest.raises(UserError, match="age is not a finite number"):
        card(tmp_path, ROWS.assign(age=["x", *ROWS.age[1:]]))


def test_a_file_with_semicolons_is_recognised(tmp_path: Path) -> None:
    """What is wrong is said, not that columns are not there."""
    ROWS.to_csv(tmp_path / "people.csv", index=False, sep=";")
    parameters = table.Parameters.model_validate(GIVEN)
    with pytest.raises(UserError, match="its fields are parted by semicolons"):
        table.examined(parameters, {"path": tmp_path / "people.csv"})


def test_curves_are_counted_by_client(tmp_path: Path) -> None:
    """Those left out for gaps, values outside, flat curves and equal ones."""
    hours = np.arange(0, 25, 2.0)
    parts = [
        pd.DataFrame({"who": who, "hour": own, "steps": steps, "group": group})
        for who, own, steps, group in (
            (1, hours, hours, "ill"),
            (2, hours, hours, "ill"),
            (3, hours, 7.0, "well"),
            (4, hours[[0, 1, 11, 12]], -1.0, "well"),
            (5, hours[:3], 1.0, "well"),
        )
    ]
    path = long_file.write(pd.concat(parts), tmp_path)
    found = curves.examined(long_file.parameters(), {"path": path})
    assert (found.rows, found.clients, found.repeats) == (46, 3, 1)
    assert [*found.left_out.values()] == [1, 1]
    assert found.columns[0].below == 4
    said = " ".join(found.remarks())
    assert "2 of 5 clients are left out" in said
    assert "1 curves hold one value only" in said
    line = found.summary_line()
    assert line is not None
    assert "1 left out: a gap above 4 h" in line


def test_a_pipeline_that_asks_for_more_clients_is_told(tmp_path: Path) -> None:
    """Before a server starts, with both numbers; a simulated one has no card."""
    ROWS.to_csv(tmp_path / "people.csv", index=False)
    tiny = plain.TINY | {"replicates": 1}
    own = STUDY | {"source": TABLE | {"bounds": {"age": [0, 100], "dose": [0, 1]}}}
    file = PipelinesFile(plain.write(tmp_path, own=own, tiny=tiny))
    project = Project(tmp_path)
    with pytest.raises(UserError, match="asks for 130, but there are only 5"):
        user_file_card(project, file.configure_pipeline("own"))
    assert user_file_card(project, file.configure_pipeline("tiny")) is None
    (tmp_path / "people.csv").unlink()
    with pytest.raises(UserError, match="no file"):
        user_file_card(project, file.configure_pipeline("own"))
