"""`curvote utility`: its JSON, its words, where models come from, its refusals."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import skops.io
from sklearn.base import BaseEstimator

from curvote.cli import app
from curvote.cli import utility as models
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml
from tests.asked_utility import ASK, QUICK, folder, people, run
from tests.utility.models_of import stroke_like

__all__ = ["folder", "run"]

FIRST = ["mechanism", "split", "read", "epsilon", "delta"]
SHARES = ["agreement", "lower", "upper", "worst", "under_target", "bound", "claimed"]
LAST = ["accuracy", "balanced_accuracy", "group", "evidence", "queries"]
KEYS = [*FIRST, *SHARES, *LAST]


class Strange(BaseEstimator):
    """A type that nobody knows to be safe."""


def test_json_is_one_document_of_the_stated_form(run: Any) -> None:
    """Floors apart, shares in [0, 1], the equal split there, nothing else said."""
    code, out, err = run("model.skops", *ASK, *QUICK, "--label", "stroke", "--json")
    said = json.loads(out)
    assert code == 0
    assert list(said) == ["model", "records", "floors", "rows", "recommendation"]
    assert said["model"]["kind"] == "StandardScaler + LogisticRegression"
    assert said["model"]["classes"] == [0, 1]
    assert said["model"]["features"] == list(stroke_like(1).names)
    assert said["model"]["evidence"] == "exact"
    assert said["records"] == 60
    assert {tuple(row) for row in said["floors"] + said["rows"]} == {tuple(KEYS)}
    assert {row["epsilon"] for row in said["floors"]} == {0.0}
    assert {row["mechanism"] for row in said["rows"]} == {
        "pm_01",
        "joint_box",
        "output",
    }
    assert {"age": 0.5, "bmi": 0.5} in [row["split"] for row in said["rows"]]
    for row in said["rows"]:
        assert 0 <= row["lower"] <= row["agreement"] <= row["upper"] <= 1
        assert row["accuracy"] is not None
    assert set(said["recommendation"]) == {*KEYS, "reason"}
    assert "[4/4]" in err


def test_a_table_a_recommendation_and_a_figure(run: Any, folder: Path) -> None:
    """By group, floors first, `output` marked; the figure is where it says."""
    code, out, _ = run("model.skops", *ASK, *QUICK, "--group", "gender")
    assert code == 0
    lines = out.splitlines()
    assert "nothing sent" in lines[1]
    assert "of them f" in lines[2]
    assert "of them m" in lines[3]
    assert "clients run the model" in out
    assert "nobody should choose epsilon" in out
    assert "figure: people-utility.png" in out
    png = (folder / "people-utility.png").read_bytes()
    assert png.startswith(b"\x89PNG")


def test_a_target_takes_the_least_total_that_reaches_it(run: Any) -> None:
    """A total that does is named; where none does, epsilon is null."""
    words = ("model.skops", *ASK, "--mechanism", "pm_01", "--json", "--epsilon")
    reached = json.loads(run(*words, "40", "--target", "0.9")[1])["recommendation"]
    assert reached["epsilon"] == 40
    assert reached["agreement"] >= 0.9
    absent = json.loads(run(*words, "0.1", "--target", "0.999")[1])["recommendation"]
    assert absent["epsilon"] is None
    assert absent["reason"]


def test_fewer_rows_are_a_sample_with_an_interval(run: Any) -> None:
    """All of them are the population, and exact evidence then has no interval."""
    every = json.loads(run("model.skops", *ASK, *QUICK, "--json")[1])
    some = json.loads(run("model.skops", *ASK, *QUICK, "--rows", "20", "--json")[1])
    assert some["records"] == 20
    assert all(row["lower"] == row["upper"] for row in every["rows"])
    assert all(row["lower"] < row["upper"] for row in some["rows"])


def test_public_records_decode_and_training_records_retrain(run: Any) -> None:
    """Both come with their floors."""
    words = ("--mechanism", "pm_01", "--epsilon", "2", "--label", "stroke", "--json")
    given = ("--public", "public.csv", "--train", "train.csv")
    said = json.loads(run("model.skops", *ASK, *words, *given)[1])
    assert {row["read"] for row in said["rows"]} == {"raw", "decode", "retrain"}
    assert {row["read"] for row in said["floors"]} == {"raw", "decode", "without"}


def test_parquet_and_columns_without_names(run: Any) -> None:
    """The same records give the same figures."""
    words = ("--features", ",".join(stroke_like(1).names), "--json")
    first = run("bare.skops", *ASK, *QUICK, *words)[1]
    swapped = [w.replace(".csv", ".parquet") for w in ASK]
    assert run("bare.skops", *swapped, *QUICK, *words)[1] == first


def test_a_model_whose_encoder_reads_text(run: Any) -> None:
    """It stays exact: a text is its place among those that the encoder knows."""
    code, out, err = run("told.skops", *ASK, *QUICK, "--json")
    assert code == 0, err
    assert json.loads(out)["model"]["evidence"] == "exact"


def test_equal_answers_are_warned_of(run: Any) -> None:
    """With the base rate; and it goes on."""
    code, _, err = run("always.skops", *ASK, *QUICK, "--label", "stroke", "--json")
    assert code == 0
    assert "agreement would be 1 and mean nothing" in err
    assert "% of the labels" in err


def test_values_beyond_the_bounds_are_counted(run: Any) -> None:
    """And moved to the edge."""
    narrow = [w.replace("age=0:100", "age=20:60") for w in ASK]
    code, _, err = run("model.skops", *narrow, *QUICK, "--json")
    assert code == 0
    assert "records lie beyond 20:60 and were moved to the edge" in err


def test_a_finished_pipelines_classifier(
    finished: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The coefficients of its own test clients are what would be sent."""
    monkeypatch.chdir(finished.root)
    words = ("tiny", "--cell", "epsilon=4", "--cell", "learner=logistic", *QUICK)
    monkeypatch.setattr(sys, "argv", ["curvote", "utility", *words, "--json"])
    with pytest.raises(SystemExit) as end:
        app.main()
    assert not end.value.code
    said = json.loads(capsys.readouterr().out)
    assert said["model"]["kind"] == "CurveClassifier"
    assert said["model"]["features"] == ["c1", "c2", "c3", "c4"]
    assert said["records"] == 40
    assert all(row["accuracy"] is not None for row in said["rows"])


def logged(folder: Path, model: Path, form: str, **facts: Any) -> Path:
    """Return a folder as MLflow stores a scikit-learn model."""
    folder.mkdir()
    (folder / model.name).write_bytes(model.read_bytes())
    flavor = {"pickled_model": model.name, "serialization_format": form} | facts
    inputs = [{"name": name} for name in stroke_like(1).names]
    signature = {"inputs": json.dumps(inputs)}
    told = {"flavors": {"sklearn": flavor}, "signature": signature}
    (folder / "MLmodel").write_text(as_yaml(told))
    return folder


def test_a_logged_model_is_read_as_any_file(
    run: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its signature names the columns; what it says it trusts is not believed."""
    uri = "models:/stroke/1"
    places = [
        logged(tmp_path / "safe", folder / "bare.skops", "skops"),
        logged(tmp_path / "pickle", folder / "model.pkl", "cloudpickle"),
    ]
    skops.io.dump(Strange(), tmp_path / "strange.skops")
    mine = {"skops_trusted_types": [f"{Strange.__module__}.Strange"]}
    places.append(logged(tmp_path / "s", tmp_path / "strange.skops", "skops", **mine))
    monkeypatch.setattr(models, "_fetch_logged", lambda *asked: places.pop(0))
    code, out, err = run(uri, *ASK, *QUICK, "--json")
    assert code == 0, err
    assert json.loads(out)["model"]["features"] == list(stroke_like(1).names)
    code, _, err = run(uri, *ASK)
    assert code == 2
    assert "skops.io.dump(mlflow.sklearn.load_model" in err
    code, _, err = run(uri, *ASK)
    assert code == 2
    assert "not known to be safe" in err


def without(option: str) -> list[str]:
    """Return what is asked, but for one option and its value."""
    at = ASK.index(option)
    return [*ASK[:at], *ASK[at + 2 :]]


BAD = [
    (("model.pkl", *ASK), "runs whatever code is in it"),
    (("model.skops", *ASK, "--trust-pickle", "model.pkl"), "leave out --trust-pickle"),
    (("number.skops", *ASK), "is a regressor"),
    (("nothing.skops", *ASK), "there is no such file"),
    (("bare.skops", *ASK), "keeps no names of its 6 columns"),
    (("model.skops", *ASK, "--features", "age,bmi"), "leave out --features"),
    (("model.skops", *without("--sensitive")), "are sensitive"),
    (("model.skops", *ASK, "--sensitive", "agee"), "Did you mean 'age'"),
    (("model.skops", *ASK, "--bounds", "bmi=1:2"), "of bmi twice"),
    (("model.skops", *ASK[:4]), "no bounds of age, bmi"),
    (("model.skops", *ASK[:4], "--bounds", "age=9:1"), "the other way round"),
    (("model.skops", *without("--data")), "--data FILE.csv"),
    (("told.skops", *ASK, "--sensitive", "gender"), "noise is for numbers"),
    (("model.skops", *ASK, "--epsilon", "0"), "epsilon is 0"),
    (("model.skops", *ASK, "--epsilon", "-1"), "epsilon is -1"),
    (("model.skops", *ASK, "--epsilon", "nan"), "epsilon is nan"),
    (("model.skops", *ASK, "--target", "1"), "target is 1.0"),
    (("model.skops", *ASK, "--target", "0"), "target is 0.0"),
    (("model.skops", *ASK, "--confidence", "1"), "confidence is 1.0"),
    (("model.skops", *ASK, "--mechanism", "pm01"), "Did you mean 'pm_01'"),
    (("model.skops", *ASK, "--mechanism", "gaussian"), "gaussian needs delta"),
    (("model.skops", *ASK, "--mechanism", "alibi"), "its outputs are codes"),
    (("model.skops", *ASK, "--mechanism", "subset_selection"), "outputs are codes"),
    (("model.skops", *ASK, "--label", "strok"), "Did you mean 'stroke'"),
    (("model.skops", *ASK, "--positive", "1"), "name its column by --label"),
    (("model.skops", *ASK, "--label", "gender"), "none of the classes"),
    (("model.skops", *ASK, "--group", "glucose"), "different values"),
    (("model.skops", *ASK, "--train", "train.csv"), "needs the column of the label"),
    (("model.skops", *ASK, "--metric", "accuracy"), "accuracy is about a label"),
    (("model.skops", *ASK, "--metric", "utility"), "metric is 'utility'"),
    (("model.skops", *ASK, "--data", "model.pkl"), "suffix is '.pkl'"),
    (("model.skops", *ASK, "--read", "decode"), "--public FILE.csv"),
    (("model.skops", *ASK, "--read", "retrain"), "--train FILE.csv"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_bad_input_is_one_message(run: Any, words: tuple[str, ...], said: str) -> None:
    """Exit 2, nothing on standard output, no traceback."""
    code, out, err = run(*words)
    assert code == 2
    assert said in err
    assert not out
    assert "Traceback" not in err
    assert "[2/" not in err


@pytest.mark.parametrize(
    ("cell", "said"),
    [("", "bmi has 1 gaps in 60 records"), ("fat", "such as 'fat'")],
)
def test_gaps_and_text_are_refused(
    run: Any, folder: Path, cell: str, said: str
) -> None:
    """With the column and the count."""
    frame = people(60, 3).astype({"bmi": object})
    frame.loc[7, "bmi"] = cell
    frame.to_csv(folder / "bad.csv", index=False)
    code, out, err = run("model.skops", *ASK, "--data", "bad.csv")
    assert (code, out) == (2, "")
    assert said in err


def test_a_name_that_is_no_pipeline_is_said(
    finished: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Did you mean; and several models want one named."""
    monkeypatch.chdir(finished.root)
    for name, told in (("tinny", "Did you mean 'tiny'"), ("tiny", "name one by")):
        monkeypatch.setattr(sys, "argv", ["curvote", "utility", name])
        with pytest.raises(SystemExit) as end:
            app.main()
        assert end.value.code == 2
        assert told in capsys.readouterr().err
