"""A table as spreadsheets export it is read as it stands; its people all count."""

import re
from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.data.tables import curves, table
from curvote.data.tables.starter import read_layout
from curvote.pipeline.config.schema import begin_project
from tests import messy_table
from tests.datasets.test_beginning import parse_value

ROWS = 1_200


@pytest.fixture
def messy(tmp_path: Path) -> tuple[Path, dict[str, int]]:
    """Return the table and how many of each class it has."""
    path = tmp_path / "Fälle.csv"
    return path, messy_table.write(path, ROWS)


def stated(path: Path, **changes: object) -> table.Parameters:
    """Return what `init` writes for the file, with what its steward knows."""
    made, name = begin_project(path.parent, "table", path)
    source = parse_value(made.read_text(encoding="utf-8"))["pipelines"][name]["source"]
    source |= parse_value(messy_table.STATED) | {"path": str(path)} | changes
    source.pop("positive", None)
    return table.Parameters.model_validate(source)


def test_init_writes_how_the_file_is_written(messy):
    """Separator, comma, letters, marks and id; codes and dates are no features."""
    given = stated(messy[0])
    form = (given.separator, given.decimal, given.encoding, given.missing_values)
    assert form == (";", ",", "cp1252", ("k.A.",))
    assert given.id == "Fall"
    assert given.features == ("Geschlecht", "Größe", "Dosis")


def test_everybody_counts_in_the_shares_of_the_file(messy):
    """Equal rows of other ids are other people, and the card says so."""
    path, counts = messy
    card = table.examined(stated(path), {"path": path})
    assert card.rows == card.clients == ROWS
    assert dict(card.classes) == counts
    assert card.repeats > 0
    assert any("their ids differ, so they are kept" in each for each in card.remarks())


def test_without_an_id_repeats_are_named(messy: tuple[Path, dict[str, int]]) -> None:
    """Nothing tells people apart then: the card says how many are left out, and why."""
    path, _ = messy
    card = table.examined(stated(path, id=None), {"path": path})
    assert card.clients == ROWS - card.repeats < ROWS
    assert any("Name a column that tells them apart" in r for r in card.remarks())


def test_a_number_of_one_feature_and_an_id_keeps_everybody(tmp_path: Path) -> None:
    """2,000 people with an age in years are 2,000, not 103."""
    path = tmp_path / "ages.csv"
    rows = (f"p{i},{i * i % 101},{'ill' if i % 5 < 3 else 'well'}" for i in range(2000))
    path.write_text("\n".join(["who,age,state", *rows]))
    source = {"path": str(path), "id": "who", "label": "state", "positive": "ill"}
    source |= {"features": ["age"], "bounds": {"age": [0, 120]}}
    card = table.examined(table.Parameters.model_validate(source), {"path": path})
    assert dict(card.classes) == {"well": 800, "ill": 1200}
    assert table.Parameters.model_validate({**source, "id": None}).duplicates == (
        "distinct"
    )


def test_culprits_come_before_what_all_rows_share(messy):
    """Few words among a thousand decimal commas, each with its line in the file."""
    path, _ = messy
    lines = path.read_bytes().decode("cp1252").replace("\r\n", "\n").split("\n")
    wrong = 1 + next(i for i, line in enumerate(lines) if ";k.A.;" in line and i > 9)
    with pytest.raises(UserError) as error:
        table.examined(stated(path, decimal=".", missing_values=[]), {"path": path})
    (said,) = (p.message for p in error.value.problems if "Größe" in p.message)
    assert f"line {wrong} 'k.A.'" in said
    assert said.index("'k.A.'") < said.index(re.findall(r"'\d,\d+'", said)[0])
    assert 'write decimal: ","' in said


def test_dates_count_in_days_between_bounds_that_are_dates(messy):
    """A date is a number where the source says how it is written."""
    path, _ = messy
    given = stated(
        path,
        features=["Geburt"],
        categories={},
        dates={"Geburt": "%d.%m.%Y"},
        bounds={"Geburt": ["1930-01-01", "2000-01-01"]},
    )
    assert given.bounds["Geburt"] == (-14610, 10957)
    first = table.clients(given, {"path": path})["curve"][:2, 0]
    assert first.tolist() == [-14610, -14610 + 365 + 31 + 1]  # 01.01.1930, 02.02.1931


def test_curves_with_commas_and_days_first(tmp_path: Path) -> None:
    """The same of long files: separator, decimal comma and the form of times."""
    path = tmp_path / "days.csv"
    rows = [
        f"w{who};30.03.2026 {hour:02}:00;{hour},5;{'ab'[who % 2]}"
        for who in range(4)
        for hour in range(0, 24, 2)
    ]
    path.write_text("\n".join(["wearer;when;activity;work", *rows]))
    made, name = begin_project(tmp_path / "new", "curves", path)
    source = parse_value(made.read_text(encoding="utf-8"))["pipelines"][name]["source"]
    assert (source["separator"], source["decimal"]) == (";", ",")
    assert source["dates"] == "%d.%m.%Y %H:%M"
    source |= {"path": str(path), "positive": "a", "unit": "h", "gaps": {"most": 3}}
    source |= {"grid": {"start": 0, "stop": 22, "points": 12}, "bounds": [0, 30]}
    found = curves.clients(curves.Parameters.model_validate(source), {"path": path})
    assert found["curve"][0].tolist() == [hour + 0.5 for hour in range(0, 24, 2)]


@pytest.mark.parametrize(
    ("columns", "own"),
    [
        ({"a": ["01", "02", "03"], "b": [5, 5, 6], "y": ["n", "n", "j"]}, "a"),
        ({"a": [17, 18, 19], "b": [5, 5, 6], "y": ["n", "n", "j"]}, "a"),
        ({"a": ["x", "y", "z"], "b": [5, 5, 6], "y": ["n", "n", "j"]}, "a"),
        ({"a": [1.5, 2.5, 9.5], "b": [5, 5, 6], "y": ["n", "n", "j"]}, None),
    ],
)
def test_a_column_that_names_its_rows_is_proposed_as_id(tmp_path, columns, own):
    """By its content: codes, counted numbers and texts that stand there once."""
    path = tmp_path / "t.csv"
    rows = zip(*columns.values(), strict=True)
    path.write_text(
        "\n".join([",".join(columns), *(",".join(map(str, r)) for r in rows)])
    )
    assert read_layout(path).unique_columns == ((own,) if own else ())
    made, name = begin_project(tmp_path / "new", "table", path)
    source = parse_value(made.read_text(encoding="utf-8"))["pipelines"][name]["source"]
    assert source.get("id") == own
    assert own not in source["features"]
