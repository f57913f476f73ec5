"""`curvote init`: what it takes from a file, and what it never does."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.data.tables.starter import TO_STATE, quote_yaml
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import begin_project
from curvote.pipeline.config.yaml_document import parse_value


def people(scale: float = 1.0, seed: int = 0) -> pd.DataFrame:
    """Return 40 people whose values say nothing that a name or a kind would."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "patient_id": rng.permutation(40) + 1000 * (1 + seed),
            "age": scale * rng.normal(size=40),
            "no": scale * rng.normal(size=40),
            "sex: given": rng.choice([f"a{seed}", f"b{seed}"], 40),
            "class": rng.choice([f"c{seed}", f"d{seed}"], 40),
        }
    )


def started(folder: Path, table: pd.DataFrame, name: str = "people.csv") -> str:
    """Return the pipelines.yaml that `init --table` writes."""
    folder.mkdir()
    table.to_csv(folder / name, index=False)
    made, _ = begin_project(folder, "table", folder / name)
    return made.read_text(encoding="utf-8")


def test_nothing_but_names_kinds_and_the_number_of_rows_is_taken(tmp_path):
    """Other values, ids, categories and classes give the same file, byte for byte."""
    one = started(tmp_path / "a", people())
    other = started(tmp_path / "b", people(scale=1e6, seed=3))
    assert one == other


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    """Also names that YAML would take for something else; columns fall into place."""
    values = parse_value(started(tmp_path / "a", people()))
    source = values["pipelines"]["people"]["source"]
    assert source["id"] == "patient_id"
    assert source["label"] == "class"
    assert source["features"] == ["age", "no", "sex: given"]
    assert [*source["bounds"]] == ["age", "no"]
    assert source["categories"] == {"sex: given": [TO_STATE]}


@pytest.mark.parametrize(
    "text", ["a b", "no", "Yes", "1e3", "#", "a: b", "'", '"', "ä", "-", "2", "y", "~"]
)
def test_a_name_is_a_text_to_yaml(text: str) -> None:
    """Whatever it looks like, inside a list too."""
    assert parse_value(f"x: [{quote_yaml(text)}]") == {"x": [text]}


@pytest.mark.parametrize(
    ("file", "name"),
    [("Länder & co.csv", "lander-co"), ("2026.csv", "my-2026"), ("no.csv", "my-no")],
)
def test_a_pipeline_is_called_as_its_file(tmp_path: Path, file: str, name: str) -> None:
    """In letters that every shell and folder takes."""
    text = started(tmp_path / "a", people(), file)
    assert [*parse_value(text)["pipelines"]] == [name]


def test_a_word_among_numbers_makes_no_categories(tmp_path: Path) -> None:
    """What is no number there is named by `check`, with its row."""
    made = people().astype({"age": object})
    made.loc[3, "age"] = "n/a"
    source = parse_value(started(tmp_path / "a", made))["pipelines"]["people"]
    assert "age" in source["source"]["bounds"]


def test_an_index_column_and_decimal_commas_are_seen_for_what_they_are(tmp_path):
    """As pandas writes its index, without a name; a comma makes no categories."""
    made = people().astype({"age": str}).assign(age="1,5")
    (tmp_path / "a").mkdir()
    made.to_csv(tmp_path / "a" / "people.csv")
    place, _ = begin_project(tmp_path / "a", "table", tmp_path / "a" / "people.csv")
    source = parse_value(place.read_text())["pipelines"]["people"]["source"]
    assert source["features"] == ["age", "no", "sex: given"]
    assert "age" in source["bounds"]


def test_every_mark_is_named_in_one_pass(tmp_path: Path) -> None:
    """With its line, its columns, and what to write."""
    started(tmp_path / "a", people())
    with pytest.raises(UserError) as raised:
        PipelinesFile(Project(tmp_path / "a")).configure_pipeline("people")
    said = [problem.message for problem in raised.value.problems]
    assert len(said) == 3
    assert all(re.match(r"pipelines\.yaml:\d+: source\.", line) for line in said)
    assert "source.bounds: still to be stated for age, no" in said[1]
    assert "two numbers known without the data, such as [0, 120]" in said[1]
    assert "source.categories: still to be stated for sex: given" in said[2]


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    """Not even an empty one; the message says the way out."""
    place = tmp_path / "pipelines.yaml"
    place.touch()
    with pytest.raises(UserError, match="is there already, and init never overwrites"):
        begin_project(tmp_path, None, None)
    assert not place.read_bytes()
    assert [*tmp_path.iterdir()] == [place]


def test_without_a_file_there_is_something_to_run(tmp_path: Path) -> None:
    """In a folder that is made; nothing is left open."""
    begin_project(tmp_path / "new", None, None)
    PipelinesFile(Project(tmp_path / "new")).check_all()


@pytest.mark.parametrize("name", ["days.csv", "days.parquet"])
def test_four_columns_are_told_by_name_or_order(tmp_path: Path, name: str) -> None:
    """Date-times bring a word on clocks; clients are counted, not rows."""
    days = pd.DataFrame(
        {
            "wearer": np.repeat([f"w{i}" for i in range(30)], 4),
            "when": pd.date_range("2026-01-01", periods=120, freq="h"),
            "activity": 1.0,
            "work": np.repeat(["day", "shift"], 60),
        }
    )
    days.to_csv(tmp_path / name, index=False) if name.endswith(
        "csv"
    ) else days.to_parquet(tmp_path / name, index=False)
    made, _ = begin_project(tmp_path, "curves", tmp_path / name)
    text = made.read_text(encoding="utf-8")
    own = parse_value(text)["pipelines"]["days"]
    four = [own["source"][key] for key in ("id", "time", "value", "label")]
    assert four == ["wearer", "when", "activity", "work"]
    assert "since the midnight" in text
    assert own["clients"] == {"train": 21, "test": 6}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a\n1\n", "one column, 'a': a label needs another"),
        ("a,a\n1,2\n", "each column needs a name of its own, not 'a'"),
        ("a,b\n", "has no rows"),
        ("", "cannot be read as csv"),
        ("a,b\n1\n", "lines without 2 fields"),
    ],
)
def test_a_file_of_no_use_is_refused_and_nothing_written(tmp_path, content, said):
    """Before a folder or a file is made."""
    written = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "x.csv").write_bytes(written)
    with pytest.raises(UserError, match=said) as error:
        begin_project(tmp_path / "new", "table", tmp_path / "x.csv")
    assert error.value.__cause__ is None  # a reader's own words may quote a cell
    assert not (tmp_path / "new").exists()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """And of which kind one should be."""
    with pytest.raises(UserError, match=r"no file .*x\.csv\. Name a CSV or Parquet"):
        begin_project(tmp_path, "table", tmp_path / "x.csv")
