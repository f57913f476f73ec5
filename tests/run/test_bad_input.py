"""What is wrong is said once, with its place and the way out; nothing runs."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import InternalError, UserError
from curvote.chain.lookup import all_systems
from curvote.chain.measure import Metric
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.run import results
from curvote.pipeline.run.results import mean_scores
from curvote.pipeline.store import records

COMMON = """\
pipelines:
  p:
    source: {name: simulated}
    clients: {train: 60, vote: 80, test: 40}
    project: {basis: bspline, size: 4}
    seed: 3
"""
TAUGHT = "    train: {count: 5, size: 20}\n    learners: [centroid]\n    epsilon: 1\n"


def refused(root: Path, text: str) -> str:
    """Return what is said of a file that is refused; nothing but it is there then."""
    (root / "pipelines.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        PipelinesFile(Project(root)).configure_pipeline("p")
    assert [path.name for path in root.iterdir()] == ["pipelines.yaml"]
    return str(error.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("    protocols: [mrma, vots]\n", "'vots' is not known. Did you mean 'votes'?"),
        (TAUGHT.replace("[centroid]", "[]"), "8: learners: is missing: `curvote list`"),
        (
            TAUGHT.replace(" 1\n", " []\n"),
            "9: epsilon: must be a list of 1 or more (given: [])",
        ),
        (
            f"{TAUGHT}    epsilon: 2\n",
            "10: epsilon stands here a second time; keep one.",
        ),
        (
            f"{TAUGHT}    grid: {{protocol: [a]}}\n",
            "is no axis of a grid: list protocols",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(more: str, said: str, tmp_path: Path) -> None:
    """An unknown system, an axis without values, an axis that stands twice."""
    message = refused(tmp_path, COMMON + more)
    assert said in message
    assert message.startswith("pipelines.yaml:")


SECTIONS = {
    "federation": "{servers: 3}",
    "votes": "{directions: 5}",
    "drift": "{at: 0.5}",
    "direct": "{arm: mean}",
    "aggregate": "{cutoff: 0.8}",
    "histogram": "{width: 0.5}",
    "train": "{count: 5, size: 20}",
}


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("one", all_systems(), ids=lambda one: one.name)
def test_a_section_that_nobody_reads_is_refused(
    one: Any, section: str, tmp_path: Path
) -> None:
    """With its line, who does read it, and what to do instead."""
    if section in one.settings.model_fields:
        return
    own = f"    protocol: {one.name}\n    {section}: {SECTIONS[section]}\n"
    message = refused(tmp_path, COMMON + own)
    line = f"pipelines.yaml:8: {section}: {one.name} never reads it: it belongs to"
    assert line in message
    assert re.search(r"Take it out, or name \w+\.", message)


def test_other_problems_are_said_in_the_same_pass(tmp_path: Path) -> None:
    """A section that nobody reads does not hide a key that is not known."""
    own = "    protocol: direct\n    votes: {}\n    clints: {}\n    epsilon: 1\n"
    message = refused(tmp_path, COMMON + own)
    assert "pipelines.yaml:8: votes: direct never reads it" in message
    assert "pipelines.yaml:9: clints: not known. Did you mean 'clients'?" in message


def test_scores_of_a_metric_that_nobody_declares_are_our_bug(
    done: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not shown under a name that nobody explains."""
    record = records.completed_run(done, "tiny")
    other = replace(all_systems()[0], metrics=(Metric("accuracy", "right"),))
    monkeypatch.setattr(results, "find_system", lambda _: other)
    with pytest.raises(
        InternalError,
        match="scores of auc, balanced_error, misclassification, none_passed",
    ):
        mean_scores(done, record)
