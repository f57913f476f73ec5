"""Quantification before collection as a pipeline: rows, floors, reruns, refusals."""

from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.mechanisms.factory import make
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import final_views, mean_scores, run_notes
from curvote.pipeline.store.records import RunRecord
from curvote.systems.utility.system import FLOORS, OUTPUT, RECOMMENDED
from tests import plain, quantified

QUANTITIES = {"agreement", "worst", "bound", "accuracy", "balanced_accuracy"}
Row = dict[str, Any]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, RunRecord]:
    """Return a finished quantification of three classes on two noised features."""
    project = plain.write(tmp_path_factory.mktemp("u"), tiny=quantified.FEATURES)
    return project, plain.run(project)


@pytest.fixture(scope="module")
def rows(done: tuple[Project, RunRecord]) -> list[Row]:
    """Return the rows of `scores --json`."""
    return mean_scores(*done)


def of(rows: list[Row], method: str, quantity: str = "agreement") -> list[Row]:
    """Return the rows of a method that tell a quantity, of all records."""
    return [
        row for row in rows if row["method"] == method and row["quantity"] == quantity
    ]


def test_rows_are_as_promised(rows: list[Row]) -> None:
    """Shares with their ends; the model is the learner, the deployment the method."""
    keys = {"pipeline", "protocol", "epsilon", "learner", "method", "quantity"}
    keys |= {"value", "lower", "upper", "replicates"}
    assert all(keys <= set(row) for row in rows)
    assert {row["quantity"] for row in rows} == QUANTITIES
    assert {row["learner"] for row in rows} == {"logistic", "tree"}
    assert {row["epsilon"] for row in rows} == {None, 0.0, 2.0, 4.0}
    for row in rows:
        assert (
            0
            <= row["lower"]
            <= row["value"] + 1e-12
            <= row["upper"] + 2e-12
            <= 1 + 3e-12
        )


def test_every_deployment_stands_there_in_words(rows: list[Row]) -> None:
    """Both mechanisms, split and joint, raw and decoded, beside what has a name."""
    said = {row["method"] for row in rows if row["epsilon"] == 4}
    assert {OUTPUT.name, "equal split", "jointly"} <= said
    assert "joint_box on all jointly, decoded" in said
    assert "pm_01, 0.5 on x and 0.5 on y" in said
    assert "pm_01, all on x" in said
    free = {row["method"] for row in rows if row["epsilon"] == 0}
    assert {floor.name for floor in FLOORS} == free


def test_a_randomised_answer_agrees_as_its_channel_says(rows: list[Row]) -> None:
    """e^epsilon / (e^epsilon + 2) for three classes, whatever the model."""
    for row in of(rows, OUTPUT.name):
        kept = make("k_rr", epsilon=row["epsilon"], n_classes=3)
        assert row["value"] == pytest.approx(kept.probabilities([0])[0, 0])
        assert row["lower"] == row["value"] == row["upper"]


def test_more_epsilon_agrees_more_and_bounds_stay_below(rows: list[Row]) -> None:
    """On average over these records; a bound never exceeds what it bounds."""
    for method in ("equal split", "jointly"):
        few, many = (
            {r["epsilon"]: r for r in of(rows, method) if r["learner"] == name}
            for name in ("logistic", "tree")
        )
        for found in (few, many):
            assert found[2.0]["value"] < found[4.0]["value"]
        for row in of(rows, method, "bound"):
            (same,) = (
                r
                for r in of(rows, method)
                if (r["learner"], r["epsilon"]) == (row["learner"], row["epsilon"])
            )
            assert row["value"] <= same["upper"] + 1e-9


def test_nothing_is_recommended_that_a_floor_beats(
    done: tuple[Project, RunRecord], rows: list[Row]
) -> None:
    """What is recommended, or why nothing is, stands in a table of its own."""
    for view in final_views(*done):
        told = view.columns("report", "recommended")
        assert str(told["reason"][0])
        best = [
            r["value"]
            for r in of(rows, RECOMMENDED.name)
            if (r["learner"], r["epsilon"])
            == (view.cell["learner"], view.cell["epsilon"])
        ]
        assert len(best) <= 1


def test_a_new_epsilon_or_mechanism_asks_the_model_nothing(
    done: tuple[Project, RunRecord],
) -> None:
    """Fits and surfaces are used again; another seed makes everything anew."""
    project, _ = done
    for change in ("epsilon=[3]", "deployments.mechanisms=[sw_01]"):
        found = plain.actions(plain.plan(project, "tiny", change))
        assert found["fit"] == found["surface"] == {"reuse"}
        assert "run" in found["agree"]
    found = plain.actions(plain.plan(project, "tiny", "seed=8"))
    assert found["surface"] == {"run"}


def test_the_same_numbers_again(
    done: tuple[Project, RunRecord], rows: list[Row], tmp_path: Path
) -> None:
    """In another place, with other blocks."""
    other = plain.write(tmp_path / "other", tiny=quantified.FEATURES)
    assert mean_scores(other, plain.run(other, block=1)) == rows


def test_coefficients_of_curves_before_curvotes_own_rule(tmp_path: Path) -> None:
    """All of them noised: by a lattice, between ends that hold."""
    project = plain.write(tmp_path, tiny=quantified.COEFFICIENTS)
    rows = mean_scores(project, plain.run(project))
    for method in ("equal split", "jointly"):
        (row,) = of(rows, method)
        assert 0.5 < row["value"] < 1
        assert row["upper"] - row["lower"] < 0.01
    (none,) = of(rows, FLOORS[0].name)
    assert none["epsilon"] == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mode": "production"}, "a study, or public records"),
        ({"record": {"sensitive": ["z"]}}, "'z'"),
        ({"record": {"sensitive": ["x"], "bounds": {"y": [0, 1]}}}, "'y'"),
        ({"models": ["sklearn.linear_model.Lasso"]}, "no classifier"),
        ({"models": ["os.system"]}, "named by its path"),
        ({"models": ["sklearn.linear_model.Logistic"]}, "no such class"),
        ({"clients": {"train": 9, "test": 9}}, "needs public records"),
        ({"deployments": {"mechanisms": ["pm01"]}}, "Did you mean 'pm_01'"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    """Before anything runs, or by the stage that finds it, in words."""
    project = plain.write(tmp_path, tiny=quantified.FEATURES | change)
    with pytest.raises(UserError, match=said):
        plain.run(project)


def test_clean_records_are_no_release(done: tuple[Project, RunRecord]) -> None:
    """Nothing of a study of clean records stands where a server may read."""
    project, _ = done
    assert not list(project.artifacts.glob("*/*"))
    held = {path.parent.name for path in project.clients.glob("*/*")}
    assert {"fit", "surface", "agree"} <= held


def test_a_model_that_cannot_change_its_mind_is_named(tmp_path: Path) -> None:
    """Its agreement is 1 and means nothing; how each model was read is told, too."""
    constant = {
        "path": "sklearn.dummy.DummyClassifier",
        "label": "constant",
        "params": {"strategy": "most_frequent"},
    }
    models = [quantified.FEATURES["models"][0], constant]
    deployments = {"mechanisms": ["pm_01"], "reads": ["raw"], "draws": 20}
    given = quantified.FEATURES | {"models": models, "deployments": deployments}
    project = plain.write(tmp_path, tiny=given | {"epsilon": [2]})
    told = run_notes(project, plain.run(project))
    assert "logistic: read by the engine linear." in told
    assert [note for note in told if note.startswith("constant gives every record")]
    assert not [note for note in told if note.startswith("logistic gives every record")]
