"""`curvote predict` and a run's model take the table that the run was trained on."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from typer.testing import CliRunner, Result

from curvote import load_run
from curvote.base.errors import UserError
from curvote.cli import app
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import begin_project
from tests import messy_table, plain
from tests.datasets.test_beginning import parse_value
from tests.private_table import TABLE

STUDY = plain.TINY | {
    "clients": {"train": 300, "vote": 230, "test": 60},
    "train": {"count": 5, "size": 60},
    "project": {"basis": "identity", "rescale": "min_max", "bounds": "public"},
    "epsilon": [8, 0.123456789],
    "learners": ["centroid"],
    "replicates": 1,
}
SOURCE = TABLE | {
    "features": ["age", "sex", "dose"],
    "categories": {"sex": ["f", "m"]},
}


def people(n: int = 600) -> pd.DataFrame:
    """Return people of two classes, some of whose values are missing."""
    rng = np.random.default_rng(3)
    ill = np.arange(n) % 2
    frame = pd.DataFrame(
        {
            "person": [f"p{i}" for i in range(n)],
            "age": (30 + 30 * ill + rng.normal(size=n)).round(3),
            "sex": rng.choice(["f", "m"], n),
            "dose": (ill + 0.1 * rng.normal(size=n)).round(3),
            "outcome": np.where(ill == 1, "ill", "well"),
        }
    )
    frame.loc[5, "sex"], frame.loc[7, "dose"] = None, np.nan
    return frame


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project with a run on a table of texts and missing cells."""
    root = tmp_path_factory.mktemp("people")
    people().to_csv(root / "people.csv", index=False)
    made = plain.write(root, table=STUDY | {"source": SOURCE})
    plain.run(made, "table")
    return made


def predict(project: Project, table: Path, *more: str, name: str = "table") -> Result:
    """Run the command; what it writes stands beside the table."""
    words = ["predict", name, "--project", str(project.root), "--table", str(table)]
    out = str(table.with_name(f"said{table.suffix}"))
    return CliRunner().invoke(app.app, [*words, "--out", out, *more])


def test_the_table_of_the_training_comes_back_with_a_column_more(
    project: Project,
) -> None:
    """Texts, empty cells, id and label as they stand; all rows, in their order."""
    done = predict(project, project.root / "people.csv", "--cell", "epsilon=8")
    assert (done.exit_code, done.stderr) == (0, "")
    told = pd.read_csv(project.root / "said.csv")
    assert told.drop(columns="prediction").equals(people())
    assert (told["prediction"] == told["outcome"]).mean() > 0.7


def test_a_model_takes_what_it_learned_from_in_any_order(project: Project) -> None:
    """And says just what it says of the numbers that training made of it."""
    run = load_run("table", project.root)
    model = pickle.loads(pickle.dumps(run.model({"epsilon": 8})))
    clients = run.table("ingest", name="clients").sort_values("client_id")
    frame = people().drop(columns=["outcome", "person"])[["dose", "sex", "age"]]
    told = model.predict(frame)
    numbers = np.stack(clients["curve"].to_list())
    known = dict(zip(map(tuple, numbers), model.predict(numbers), strict=True))
    made = frame.assign(
        f=(frame["sex"] == "f").where(frame["sex"].notna(), 0.5).astype(float),
        m=(frame["sex"] == "m").where(frame["sex"].notna(), 0.5).astype(float),
        dose=frame["dose"].fillna(1.0),
    )
    rows = made[["age", "f", "m", "dose"]].itertuples(index=False, name=None)
    assert told.tolist() == [known[row] for row in rows]
    texts = frame.astype(object).where(frame.notna(), "NA").astype(str)
    assert np.array_equal(model.predict(texts), told)
    shuffled = frame.sample(frac=1, random_state=0)
    assert np.array_equal(model.predict(shuffled), told[shuffled.index])


def test_a_row_of_no_use_has_an_empty_answer_and_is_said(
    project: Project, tmp_path: Path
) -> None:
    """As many rows come out as went in; nothing of a cell stands in the words."""
    table = tmp_path / "new.csv"
    table.write_text("sex,dose,age\nf,1,60\nother,1,60\n,0,\nm,1,sixty\n")
    done = predict(project, table, "--cell", "epsilon=8")
    assert done.exit_code == 0
    assert "2 of 4 rows have no answer" in done.stderr
    assert "sex is none of the categories f, m in line 3" in done.stderr
    assert "age is not a finite number in line 5" in done.stderr
    assert not {"other", "sixty"} & {*done.stderr.replace(")", " ").split()}
    told = pd.read_csv(tmp_path / "said.csv", keep_default_na=False)
    assert told["prediction"].tolist() == ["ill", "", told["prediction"][2], ""]
    assert told["prediction"][2] in {"ill", "well"}
    model = load_run("table", project.root).model({"epsilon": 8})
    with pytest.warns(UserWarning, match=r"1 of 2 rows .*in row 2"):
        scores = model.decision_function(pd.read_csv(table)[:2])
    assert np.isnan(scores).tolist() == [False, True]
    with pytest.raises(UserError, match="no row can be used: age is not a finite"):
        model.predict(pd.read_csv(table)[3:])


def test_a_source_that_leaves_rows_out_leaves_their_answers_empty(
    project: Project, tmp_path: Path
) -> None:
    """Without a rule for missing cells three rows go in, three come out, one empty."""
    plain.write(project.root, drop=STUDY | {"source": SOURCE | {"missing": "drop"}})
    plain.run(project, "drop", "epsilon=[8]")
    table = tmp_path / "new.csv"
    table.write_text("age,sex,dose\n60,f,1\n,,\n31,m,0\n")
    done = predict(project, table, name="drop")
    assert "1 of 3 rows have no answer: age is missing in line 3" in done.stderr
    told = pd.read_csv(tmp_path / "said.csv", keep_default_na=False)
    assert told["prediction"].tolist() == ["ill", "", "well"]


def test_a_messy_table_goes_from_init_to_predict(tmp_path: Path) -> None:
    """Read and written as the spreadsheet does; who has no height is at its centre."""
    path = tmp_path / "Fälle.csv"
    messy_table.write(path, 1_200)
    made, name = begin_project(tmp_path, "table", path)
    own = parse_value(made.read_text(encoding="utf-8"))["pipelines"][name]
    own["source"] |= parse_value(messy_table.STATED)
    own["source"].pop("positive", None)
    few = {"clients": {"train": 1000, "test": 200}, "epsilon": [4], "replicates": 1}
    started = plain.write(tmp_path, messy=own | few)
    plain.run(started, "messy")
    done = predict(started, path, "--cell", "protocol=auto", name="messy")
    assert done.exit_code == 0, done.exception
    assert "1200 records" in done.stdout
    said = (tmp_path / "said.csv").read_text(encoding="cp1252")
    how: Any = {"sep": ";", "dtype": str, "keep_default_na": False}
    before = pd.read_csv(path, encoding="cp1252", **how)
    told = pd.read_csv(tmp_path / "said.csv", encoding="cp1252", **how)
    assert told.drop(columns="prediction").equals(before)
    assert {*told["prediction"]} <= {*messy_table.SHARES}
    assert "zwei\nZeilen" in said
    model = load_run("messy", tmp_path).model({"protocol": "auto"})
    rows = {"Dosis": ["6,5", 6.5, "k.A."], "Größe": [1.9, None, "1,90"]}
    mixed = model.predict(pd.DataFrame(rows | {"Geschlecht": ["m", "m", "m"]}))
    typed = model.predict([[1.0, 0.0, 1.9, 6.5], [1, 0, 1.7, 6.5], [1, 0, 1.9, 5]])
    assert mixed.tolist() == typed.tolist()


CURVES = {
    "name": "curves",
    "path": "long.csv",
    "id": "who",
    "time": "t",
    "value": "v",
    "label": "group",
    "classes": ["low", "high"],
    "grid": {"start": 0, "stop": 1, "points": 9},
    "unit": "h",
    "bounds": [-5, 5],
    "gaps": {"most": 0.3},
}


SIZE = {"clients": {"train": 20, "vote": 20, "test": 20}, "source": CURVES}
STUDIES = {
    "table": STUDY | {"source": SOURCE},
    "long": plain.TINY | SIZE | {"epsilon": [8], "learners": ["centroid"]},
}
STUDIES["long"] |= {"replicates": 1}


def measurements() -> pd.DataFrame:
    """Return measurements of 60 people, nine of each."""
    rng = np.random.default_rng(1)
    times, high = np.linspace(0, 1, 9), np.arange(60) % 2
    rows = {
        "who": np.repeat([f"a{i}" for i in range(60)], 9),
        "t": np.tile(times, 60),
        "v": (np.outer(4 * high - 2, times) + 0.1 * rng.normal(size=(60, 9))).ravel(),
        "group": np.repeat(np.where(high, "high", "low"), 9),
    }
    return pd.DataFrame(rows)


def test_measurements_each_get_the_class_of_their_curve(tmp_path: Path) -> None:
    """A long table comes back with its rows; a curve with a gap has an empty answer."""
    frame = measurements()
    frame.to_csv(tmp_path / "long.csv", index=False)
    made = plain.write(tmp_path, long=STUDIES["long"])
    plain.run(made, "long")
    kept = frame[(frame["who"] != "a3") | (frame["t"] < 0.2)].drop(columns="group")
    kept.to_csv(tmp_path / "new.csv", index=False)
    done = predict(made, tmp_path / "new.csv", name="long")
    assert done.exit_code == 0, done.exception
    assert "a gap above 0.3 h, or an end not reached in lines 29, 30" in done.stderr
    told = pd.read_csv(tmp_path / "said.csv")
    assert len(told) == len(kept)
    assert told[told["who"] == "a3"]["prediction"].isna().all()
    model = load_run("long", tmp_path).model()
    wide = frame.pivot(index="who", columns="t", values="v")
    each = told.groupby("who")["prediction"].first().drop("a3")
    assert each.tolist() == model.predict(wide.drop("a3")).tolist()


def test_cell_takes_what_the_message_prints(project: Project) -> None:
    """The whole of it, one of its values, or the number written otherwise."""
    table = project.root / "people.csv"
    words = str(predict(project, table).exception)
    printed = words.partition("--cell: ")[2].rstrip(".").split("; ")
    assert len(printed) == 2
    for text in (*printed, '"epsilon=8.0"', '"epsilon=0.123456789"'):
        assert predict(project, table, "--cell", text.strip('"')).exit_code == 0, text
    for text in ("epsilon=9", "epsilon=0.123457", "epsilon=8, learner=cg", "8"):
        assert predict(project, table, "--cell", text).exit_code != 0, text


def test_a_table_of_a_stage_is_found_by_the_cells_that_it_serves(
    project: Project,
) -> None:
    """What all levels share is that of each; there is none of a level that is not."""
    run = load_run("table", project.root)
    shared = run.table("project", name="constants")
    assert run.table("project", {"epsilon": 8}, name="constants").equals(shared)
    given = {"epsilon": 8, "learner": "centroid"}
    assert len(run.table("privatize", given, name="reports")) == len(
        run.table("privatize", {"epsilon": 8}, name="reports")
    )
    with pytest.raises(UserError, match="none is of"):
        run.table("project", {"epsilon": 7}, name="constants")


def test_a_model_of_an_earlier_version_says_what_it_said(project: Project) -> None:
    """It knows no form: it takes its own numbers by name, or as an array."""
    model = load_run("table", project.root).model({"epsilon": 8})
    old = clone(model)
    assert "form" not in vars(old)
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.random((9, 4)), columns=model.columns)
    assert np.array_equal(old.predict(numbers), model.predict(numbers.to_numpy()))
    assert np.array_equal(model.predict(numbers), old.predict(numbers))
    with pytest.raises(UserError, match="2 columns are missing"):
        old.predict(people())
