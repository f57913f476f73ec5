"""Published tables: repeated rows, missing values, ids, facts, one-hot categories."""

import json
from itertools import product
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.data import reader
from curvote.data.public.published_tables import one_hot
from curvote.data.reader import Duplicates, Missing, PreparedTable, TableParameters
from tests import tables
from tests.tables import SCHEMA

POLICIES = list(product(get_args(Duplicates), get_args(Missing)))
CENTRES = np.array([70.0, 1.0, 5.0])


def table(n: int = 60, seed: int = 1, *, gaps: bool = True) -> pd.DataFrame:
    """Return a checked table with repeats, and with numbers that mean missing."""
    data = tables.text(tables.rows(n, seed, gaps=gaps))
    return reader.check_table(reader.parse_table(data, SCHEMA), SCHEMA)


def prepared(
    frame: pd.DataFrame, duplicates: str = "keep", missing: str = "centre"
) -> PreparedTable:
    """Return the clients of the table."""
    return reader.prepare_clients(frame, SCHEMA, duplicates, missing)


def absent(values: np.ndarray) -> np.ndarray:
    """Return where a value is missing."""
    return np.isnan(values) | (values == [0, np.nan, -9])


@pytest.mark.parametrize("seed", range(5))
def test_distinct_keeps_the_first_of_equal_rows(seed: int) -> None:
    """Features and label decide; gaps in both are equal; both counts stand."""
    frame = table(seed=seed)
    first: dict[str, int] = {}
    for line, row in zip(frame.index, frame.to_numpy().tolist(), strict=True):
        first.setdefault(str(row), line)
    kept = prepared(frame, "distinct")
    assert kept.ids.tolist() == list(first.values())
    assert 0 < len(first) < len(frame)
    for duplicates in get_args(Duplicates):
        found = prepared(frame, duplicates)
        assert (found.rows, found.distinct) == (len(frame), len(first))
    assert prepared(frame).ids.tolist() == frame.index.tolist()


@pytest.mark.parametrize("duplicates", get_args(Duplicates))
@pytest.mark.parametrize("seed", range(3))
def test_centre_fills_what_is_missing_and_nothing_else(seed, duplicates):
    """Empty cells, marks and zeros that mean missing get the public centre; counted."""
    frame = table(seed=seed)
    filled = prepared(frame, duplicates, "centre")
    values = frame.loc[filled.ids, SCHEMA.names].to_numpy()
    gaps = absent(values)
    np.testing.assert_array_equal(filled.features, np.where(gaps, CENTRES, values))
    counts = dict(zip(SCHEMA.names, gaps.sum(axis=0).tolist(), strict=True))
    assert filled.missing == counts
    assert all(counts.values())


@pytest.mark.parametrize("duplicates", get_args(Duplicates))
def test_drop_leaves_the_complete_rows(duplicates: str) -> None:
    """They are those of `centre` without a gap, and the counts are the same."""
    frame = table()
    filled, dropped = (prepared(frame, duplicates, m) for m in ("centre", "drop"))
    whole = ~absent(frame.loc[filled.ids, SCHEMA.names].to_numpy()).any(axis=1)
    assert 0 < whole.sum() < len(whole)
    np.testing.assert_array_equal(dropped.ids, filled.ids[whole])
    np.testing.assert_array_equal(dropped.features, filled.features[whole])
    np.testing.assert_array_equal(dropped.labels, filled.labels[whole])
    assert dropped.missing == filled.missing


def test_keep_leaves_numbers_that_mean_missing() -> None:
    """The publisher's zeros stay, and are counted all the same."""
    frame = table(gaps=False)
    kept = prepared(frame, missing="keep")
    np.testing.assert_array_equal(kept.features, frame[SCHEMA.names])
    assert kept.missing["Weight"] == (frame["Weight"] == 0).sum() > 0


def test_keep_refuses_an_empty_cell() -> None:
    """The message counts the cells of each feature."""
    frame = table()
    counts = frame[SCHEMA.names].isna().sum()
    message = ", ".join(f"{name} {counts[name]}" for name in SCHEMA.names)
    with pytest.raises(UserError, match=f"hold no number: {message}. Only"):
        prepared(frame, missing="keep")


def test_drop_refuses_to_leave_nobody() -> None:
    """A table without one complete row has no clients."""
    frame = table()
    with pytest.raises(UserError, match="drop leaves no row"):
        prepared(frame.assign(Visits=np.nan), missing="drop")


def test_ids_do_not_depend_on_the_policies() -> None:
    """One id is one line of the file: same label, same values where one is there."""
    frame = table(gaps=False)
    for duplicates, missing in POLICIES:
        found = prepared(frame, duplicates, missing)
        rows = frame.loc[found.ids]
        values = rows[SCHEMA.names].to_numpy()
        np.testing.assert_array_equal(found.labels, rows["Ill"])
        there = ~absent(values)
        np.testing.assert_array_equal(found.features[there], values[there])
        assert len(set(found.ids.tolist())) == len(found.ids)


def test_columns_are_those_of_every_data_set() -> None:
    """Whole numbers but for the features; every client is a group of its own."""
    columns = prepared(table()).columns()
    kinds = {name: (v.dtype.name, v.shape) for name, v in columns.items()}
    whole = ("int64", (60,))
    assert kinds == {
        "client_id": whole,
        "label": whole,
        "group": whole,
        "curve": ("float64", (60, 3)),
    }
    np.testing.assert_array_equal(columns["group"], np.arange(60))


@pytest.mark.parametrize(("duplicates", "missing"), POLICIES)
def test_facts_are_plain_json_and_state_both_policies(duplicates, missing):
    """They survive JSON; rows and counts are those of the clients."""
    frame = table(gaps=False)
    parameters = TableParameters(duplicates=duplicates, missing=missing)
    found = prepared(frame, duplicates, missing)
    facts = reader.facts(SCHEMA, found, "Title", ["A note."], parameters)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["rows"] == len(found.labels) == sum(facts["counts"].values())
    assert facts["counts"]["ill"] == found.labels.sum()
    assert (facts["grid"], facts["domain"]) == ([0, 1, 2], [0, 2])
    assert [feature["centre"] for feature in facts["features"]] == CENTRES.tolist()
    assert facts["features"][1]["unit"] == "code: 0 = Bonn, 1 = Oslo, 2 = Rome"
    both = {"rows": 60, "distinct": found.distinct}
    assert facts["duplicates"] == {"policy": duplicates, **both}
    assert facts["missing"] == {"policy": missing, "counts": found.missing}
    note, repeats, gaps = facts["notes"]
    assert note == "A note."
    assert repeats.startswith(f"{60 - found.distinct} of 60 rows repeat")
    assert ("inflated" in repeats) == (duplicates == "keep")
    assert gaps.endswith(
        f"Weight {found.missing['Weight']}, Visits {found.missing['Visits']}."
    )


def test_facts_of_a_clean_table_need_no_further_note() -> None:
    """Nothing repeated, nothing missing: nothing to state."""
    frame = table(gaps=False).drop_duplicates()
    whole = frame[~absent(frame[SCHEMA.names].to_numpy()).any(axis=1)]
    facts = reader.facts(SCHEMA, prepared(whole), "Title", [], TableParameters())
    assert facts["notes"] == []


def test_one_hot_spreads_each_category_and_nothing_else() -> None:
    """A 1 at the category's own feature; what is missing is missing in each of them."""
    frame = table()
    wide, schema = one_hot(frame, SCHEMA)
    towns = [f"Town = {town}" for town in ("Bonn", "Oslo", "Rome")]
    assert schema.names == ["Weight", *towns, "Visits"]
    assert wide.columns.tolist() == [*schema.names, "Ill"]
    known = frame["Town"].notna()
    assert 0 < known.sum() < len(frame)
    np.testing.assert_array_equal(
        wide[known][towns], np.eye(3)[frame["Town"][known].astype(int)]
    )
    assert wide[~known][towns].isna().all(axis=None)
    others = ["Weight", "Visits", "Ill"]
    assert wide[others].equals(frame[others])
    assert wide.duplicated().equals(frame.duplicated())
