"""Volunteers: what they alone would give stands beside every study, unasked."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.learning.volunteers import ridge_logistic
from curvote.messages.roles import split_roles
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.settings import labelled_parts, labels_by_setting
from curvote.pipeline.run.results import final_model, final_views, mean_scores
from curvote.pipeline.store.artifacts import artifact
from curvote.pipeline.store.records import RunRecord
from curvote.report.page import load_page_data, render_report
from tests import plain, production

GIVEN = plain.TINY | {
    "clients": {"public": 30, "train": 60, "vote": 80, "test": 40},
    "project": {"basis": "bspline", "size": 4},
    "epsilon": [0.5, 4],
    "learners": ["centroid"],
    "replicates": 2,
}
LABELS = {"volunteers": {"labels": True}}
Run = tuple[Project, RunRecord]


def joining(**changes: Any) -> dict[str, Any]:
    """Return a pipeline of `auto` that joins volunteers with reports."""
    return plain.of("auto", given=GIVEN) | LABELS | changes


@pytest.fixture(scope="module")
def join(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run of `auto` with the labels of volunteers."""
    project = plain.write(tmp_path_factory.mktemp("join"), tiny=joining())
    return project, plain.run(project)


def configured(tmp_path: Path, **pipeline: Any) -> list[str | None]:
    """Return the names of the settings of a pipeline."""
    project = plain.write(tmp_path, tiny=pipeline)
    return [
        one.name for one in PipelinesFile(project).configure_pipeline("tiny").settings
    ]


@pytest.mark.parametrize("name", ["mrma", "direct", "votes", "majority", "auto"])
def test_volunteers_stand_beside_every_protocol(name: str, tmp_path: Path) -> None:
    """As one more protocol at the end, and only where there are some."""
    own = plain.of(name, given=GIVEN)
    assert configured(tmp_path, **own) == [None, "volunteers"]
    nobody = GIVEN["clients"] | {"public": 0}
    assert configured(tmp_path, **own | {"clients": nobody}) == [None]


def test_volunteers_stand_once_for_each_combination_of_the_grid(tmp_path: Path) -> None:
    """Protocols share them; who named them gets no second row."""
    own = plain.of("direct", "votes", given=GIVEN)
    protocols = {"protocols": ["direct", "votes"], "grid": {"project.size": [4, 5]}}
    found = configured(tmp_path, **own, **protocols)
    assert [n for n in found if n and n.startswith("volunteers")] == [
        "volunteers project.size=4",
        "volunteers project.size=5",
    ]
    named = {"protocols": ["direct", {"name": "volunteers", "label": "fifty"}]}
    assert configured(tmp_path, **own, **named) == ["direct", "fifty"]


def test_all_three_stand_side_by_side(join: Run) -> None:
    """`auto` takes the join; the same reports alone and the volunteers stand by it."""
    rows = mean_scores(*join)
    told = {(row["protocol"], row["epsilon"], row["method"]) for row in rows}
    reports = {0.5: "mean", 4: "joint"}
    for epsilon, arm in reports.items():
        assert {("auto", epsilon, method) for method in ("joined", arm)} <= told
    assert ("volunteers", None, "volunteers") in told
    assert {name for name, _, method in told if method == "volunteers"} == {
        "volunteers"
    }


def test_nobody_but_volunteers_is_published(join: Run) -> None:
    """The public table holds their records; the classifier alone is made of them."""
    for view in final_views(*join):
        published = view.columns("publish", "public_records")
        clients = view.columns("project", "encoded")
        sizes = GIVEN["clients"]
        mine = split_roles(GIVEN["seed"], 0, len(clients["label"]), sizes)["public"]
        assert np.array_equal(published["z"], clients["z"][mine])
        assert np.array_equal(published["label"], clients["label"][mine])
        assert set(published) == {"z", "label"}
        if view.cell["protocol"] == "volunteers":
            coef, intercept = ridge_logistic(published["z"], published["label"])
            made = view.columns("aggregate", "classifier")
            assert np.array_equal(made["coef"][0], coef)
            assert made["intercept"][0] == intercept


def test_the_reports_alone_are_those_of_direct(tmp_path: Path, join: Run) -> None:
    """Nothing that clients send depends on what volunteers give."""
    own = plain.of("direct", given=GIVEN)
    project = plain.write(tmp_path, tiny=own)
    alone = {
        (row["epsilon"], row["method"]): row["misclassification"]
        for row in mean_scores(project, plain.run(project))
        if row["protocol"] == "direct"
    }
    for row in mean_scores(*join):
        if row["protocol"] == "auto" and row["method"] in ("mean", "joint"):
            assert alone[row["epsilon"], row["method"]] == row["misclassification"]


@pytest.mark.usefixtures("blank_figures")
def test_the_page_says_what_is_public(join: Run, tmp_path: Path) -> None:
    """And that these people alone buy so much; no count of settings is in the way."""
    data = load_page_data(*join)
    page = " ".join(render_report(data, tmp_path).read_text(encoding="utf-8").split())
    assert "theirs are public, and so are their labels" in page
    assert "what these 30 willing people buy" in page
    assert "joined with the reports of the others" in page
    assert not any("settings:" in note for note in data.notes)


def test_a_model_is_kept_of_the_volunteers(join: Run) -> None:
    """Anybody may have it: it was made of public records."""
    project, record = join
    cells = {view.cell["protocol"]: view.cell for view in final_views(project, record)}
    assert final_model(project, record, cells["volunteers"]) is not None


def test_production_has_no_companion(tmp_path: Path) -> None:
    """A release has one setting."""
    released = joining(
        protocol="direct",
        direct={"arm": "mean"},
        mode="production",
        clients={"public": 30, "train": 60},
        epsilon=1,
        ledger={"per_client": {"epsilon": 1}},
    )
    del released["replicates"]
    assert configured(tmp_path, **released) == [None]
    made = PipelinesFile(plain.write(tmp_path, tiny=released)).configure_pipeline(
        "tiny"
    )
    assert made.pipeline.protocol == "joined"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"clients": GIVEN["clients"] | {"public": 0}}, "there are no volunteers"),
        ({"protocol": "direct", "direct": {"arm": "two"}}, "name one of these"),
        ({"liars": 0.1}, "never measured"),
    ],
)
def test_what_cannot_be_joined_is_refused(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """Before anything runs, with its reason."""
    with pytest.raises(UserError, match=said):
        configured(tmp_path, **joining(**changes))


def test_labels_and_parts_of_a_run_agree(join: Run) -> None:
    """What stands beside unasked is found again in a stored configuration."""
    _, record = join
    names = {name for name, _ in labelled_parts(record.config)}
    assert names == set(labels_by_setting(record.config)) == {None, "volunteers"}


def test_a_release_joins_what_volunteers_made_public(tmp_path: Path) -> None:
    """Clients report as for `direct`, once; the table of records is the volunteers'."""
    labels = {"direct": {"arm": "joint"}, **LABELS}
    project = production.write(
        tmp_path,
        protocol="direct",
        project={"basis": "bspline", "size": 4, "rescale": "standard"},
        clients={"public": 30, "train": 60, "vote": 80},
        **labels,
    )
    made = production.run(project)
    assert {step.action for step in production.run(project).steps} == {"reuse"}
    assert len(production.confirmed(project)) == 1
    assert [step.release.message for step in production.releases(made)] == ["report"]
    (published,) = (step for step in made.steps if step.stage.name == "publish")
    there = artifact(project, "publish", published.key)
    assert there.n_rows == 30
