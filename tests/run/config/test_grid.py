"""A grid: every combination is a setting, and what settings share is made once."""

from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.settings import (
    expand_settings,
    labelled_parts,
    labels_by_setting,
    setting_name,
)
from curvote.pipeline.run.results import final_views, mean_scores
from curvote.report.page import assign_columns
from tests import plain

SIZES = {"project.size": [4, 5]}
A, B = {"name": "diabetes"}, {"name": "employee"}
RULES = {
    "rule": {"lax": {"aggregate.cutoff": 0.5}, "strict": {"aggregate.cutoff": 0.9}}
}
SMALL = plain.FEW


def project_with(root: Path, **changes: Any) -> Project:
    """Write a small pipeline with some keys changed."""
    return plain.write(root, tiny=SMALL | changes)


def test_the_settings_are_the_product_of_the_axes_in_the_file_s_order() -> None:
    """Both forms of an axis; the configuration given is left as it is."""
    given = {"project": {"size": 9}, "aggregate": {}, "grid": RULES | SIZES}
    found = list(expand_settings(given))
    labels = [labels for labels, _ in found]
    assert labels == [
        {"rule": rule, "project.size": size}
        for rule in ("lax", "strict")
        for size in ("4", "5")
    ]
    assert [own["aggregate"]["cutoff"] for _, own in found] == [0.5, 0.5, 0.9, 0.9]
    assert [own["project"]["size"] for _, own in found] == [4, 5, 4, 5]
    assert given["project"] == {"size": 9}
    assert given["aggregate"] == {}


def test_without_a_grid_there_is_one_setting_without_a_name() -> None:
    """Nothing is named that nobody set apart."""
    ((labels, own),) = expand_settings({"a": 1})
    assert (labels, own, setting_name(labels)) == ({}, {"a": 1}, None)


def test_a_run_s_configuration_gives_back_each_setting() -> None:
    """What was planned from the file can be told from the record alone."""
    config = SMALL | {"grid": SIZES}
    assert list(labels_by_setting(config)) == ["project.size=4", "project.size=5"]
    parts = [
        (name, part.settings.project.size) for name, part in labelled_parts(config)
    ]
    assert parts == [("project.size=4", 4), ("project.size=5", 5)]


def test_settings_share_what_they_can_and_each_has_its_scores(tmp_path: Path) -> None:
    """Curves are simulated once for two sizes; a cutoff only changes what follows."""
    project = project_with(tmp_path, grid=SIZES | RULES)
    runs = plain.plan(project).steps_to_run()
    made = [step.stage.name for step in runs]
    assert {stage: made.count(stage) for stage in ("ingest", "project", "train")} == {
        "ingest": 1,
        "project": 2,
        "train": 2,
    }
    assert made.count("aggregate") == 4
    record = plain.run(project)
    assert plain.to_run(plain.plan(project)) == set()
    rows = [row for row in mean_scores(project, record) if row["method"] == "mrma"]
    assert [row["setting"] for row in rows] == list(
        labels_by_setting(record.config).values()
    )
    for view in final_views(project, record):
        size = view.settings.project.size
        assert f"project.size={size}" in view.cell["setting"]
        assert view.system.final_model(view).coef.size == size
        assert view.metadata("project")["d"] == size
        assert view.setting("project.size") == size


def test_a_shared_step_says_whose_it_is(tmp_path: Path) -> None:
    """The plan tells why a cell that never ran is not run."""
    made = plain.plan(project_with(tmp_path, grid=RULES))
    (shared,) = {step.reason for step in made.steps if step.action == "reuse"} & {
        "the same as ingest rule=lax"
    }
    assert shared


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"project.size": 4}, "is an axis: give a list"),
        ({"project.size": []}, "is an axis: give a list"),
        ({"seed": [1, 2]}, "seed is the same for all settings"),
        ({"source.name.x": [1]}, "name is not a mapping"),
        ({"project.size": [4, 2]}, "project.size: size is 2"),
        ({"table": {"a": {"source": A}, "b": {"source": B}}}, "read other files"),
    ],
)
def test_a_wrong_grid_is_refused(tmp_path: Path, grid: Any, message: str) -> None:
    """What cannot be an axis, and a setting that is no valid pipeline."""
    project = project_with(tmp_path, grid=grid)
    with pytest.raises(UserError) as error:
        PipelinesFile(project).configure_pipeline("tiny")
    assert message in str(error.value)
    assert "pipelines.yaml:" in str(error.value)


def test_production_has_no_grid(tmp_path: Path) -> None:
    """A release is one: it is not made in several settings."""
    project = project_with(tmp_path, grid=SIZES, mode="production")
    with pytest.raises(UserError, match="a release has one setting"):
        PipelinesFile(project).configure_pipeline("tiny")


def test_a_score_without_a_learner_stands_in_every_column_of_its_setting() -> None:
    """The majority of one setting is not shown as that of another."""
    base = {"epsilon": 1.0, "method": "mrma"}
    rows = [
        base | {"learner": "cg", "setting": {"d": "4"}},
        base | {"learner": "cg", "setting": {"d": "5"}, "arrival": 2},
        base | {"learner": None, "setting": {"d": "4"}, "method": "majority"},
    ]
    found = [(row["method"], row["learner"]) for row in assign_columns(rows)]
    assert found == [
        ("mrma", "cg, d=4"),
        ("mrma", "cg, d=5, arrival 2"),
        ("majority", "cg, d=4"),
    ]
