"""A table read a block of rows at a time says what it says as a whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base import table_file
from curvote.base.errors import UserError
from curvote.data.tables import table
from curvote.data.tables.cells import RepeatedRows

POLICIES = [(d, m) for d in ("distinct", "keep") for m in ("centre", "drop")]


def parameters(**changes: Any) -> table.Parameters:
    """Return parameters of a table with a number, a category and ids."""
    told = {
        "path": "people.parquet",
        "id": "person",
        "label": "ill",
        "positive": "yes",
        "features": ["age", "town"],
        "bounds": {"age": [0, 100]},
        "categories": {"town": ["bath", "york"]},
    }
    return table.Parameters.model_validate(told | changes)


def write(folder: Path, **changed: list[Any]) -> dict[str, Path]:
    """Write ten people in a Parquet file, of whom some are alike or lack something."""
    import pandas as pd

    told = {
        "person": [f"p{i}" for i in range(10)],
        "ill": ["yes", "no"] * 5,
        "age": [30.0, 40, 30, None, 55, 40, 30, 80, 55, None],
        "town": ["york", "bath", "york", "york", None, "bath", "york", "bath"]
        + 2 * [""],
    }
    path = folder / "people.parquet"
    pd.DataFrame(told | changed).to_parquet(path, row_group_size=4)
    return {"path": path}


@pytest.mark.parametrize(("duplicates", "missing"), POLICIES)
def test_blocks_change_nothing(tmp_path, monkeypatch, duplicates, missing):
    """Facts, clients and members are those of one block, however small blocks are."""
    asked, paths = parameters(duplicates=duplicates, missing=missing), write(tmp_path)

    def everything() -> list[Any]:
        table._cached_survey.cache_clear()
        facts, found = table.facts(asked, paths), table.clients(asked, paths)
        who = [part["client_id"] for part in table.members(asked, paths)]
        assert np.concatenate(who).tolist() == found["client_id"].tolist()
        return [facts, {name: own.tolist() for name, own in found.items()}]

    whole = everything()
    monkeypatch.setattr(table_file, "_ROWS", 3)
    monkeypatch.setattr(table, "CLIENTS", 2)
    assert everything() == whole
    assert all(len(p["label"]) <= 2 for p in table.pieces(asked, paths))


def test_rows_are_numbered_through_all_blocks(tmp_path, monkeypatch):
    """What is wrong is counted and shown as for one block."""
    monkeypatch.setattr(table_file, "_ROWS", 3)
    people = [f"p{i}" for i in range(8)] + ["p0", None]
    paths = write(tmp_path, person=people, town=["york"] * 7 + ["leeds"] + 2 * ["bath"])
    with pytest.raises(UserError) as error:
        table.facts(parameters(), paths)
    said = " ".join(problem.message for problem in error.value.problems)
    assert "person is empty (1): row 10" in said
    assert "person repeats an earlier one" in said
    assert "row 9 'p0'" in said
    assert "row 8 'leeds'" in said


def test_repeated_rows_are_told_from_their_digests() -> None:
    """As by comparing all rows: missing values are equal, and 0 is -0."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 4, (500, 3)).astype(float)
    rows[rows == 3] = np.nan
    rows[::7] *= -1.0
    found = RepeatedRows()
    for part in np.array_split(rows, 9):
        found.add(part)
    first = found.first_occurrences()
    plain = [str((row + 0.0).tolist()) for row in rows]
    assert first is not None
    assert first.tolist() == [text not in plain[:i] for i, text in enumerate(plain)]
    none = RepeatedRows()
    none.add(np.arange(8.0).reshape(4, 2))
    assert none.first_occurrences() is None
