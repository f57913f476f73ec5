"""The names of releases that exist: no version of curvote may give them another.

A release under a new name would be a second release of the same clients.
"""

import os
import shutil
from pathlib import Path

import pytest

from curvote.data import raw_files
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.planner import make_plan
from tests import production
from tests.protocols.test_direct import arm

REPOSITORY = Path(__file__).parents[3]
PHONEMES = {
    "privatize": "c76c2d8237786f2d8e559158a0117b36",
    "evaluate": "bd6c4b386fc3190f8d3587748d9dd95e",
}
# Rounds of envelopes go by their base and number.
REMOTE = {
    "privatize": "f1795c210c5993ba59030390fd47b613-1",
    "evaluate": "0dcf0bee30e9ed51662d75c39401dfbc-1",
}
DIRECT = {
    "privatize": "ade87bdb7ef9e823e9515922845ff4b4",
    "refine": "9a75ff47bd63227048bf78e5e0a67b72",
}


def released(project: Project, name: str) -> dict[str, str]:
    """Return what the ledger, or the intake, calls each release of a pipeline."""
    configured = PipelinesFile(project).configure_pipeline(name)
    steps = make_plan(project, configured, fetch=True).steps
    found = {}
    for step in steps:
        if step.release:
            by_envelope = step.release.by_envelope
            found[step.stage.name] = step.release.id if by_envelope else step.key
    return found


@pytest.fixture
def shipped(tmp_path: Path) -> Project:
    """Return a project with the shipped pipelines."""
    shutil.copy(REPOSITORY / "pipelines.yaml", tmp_path)
    (tmp_path / "data").mkdir()
    shutil.copy(REPOSITORY / "data" / "sources.toml", tmp_path / "data")
    return Project(tmp_path)


@pytest.mark.skipif(
    not os.environ.get(raw_files.MIRROR),
    reason="needs the real file: CURVOTE_DATA_MIRROR unset",
)
def test_the_release_of_phonemes_keeps_its_names(shipped: Project) -> None:
    """The clients are here: their ids are those of the published file."""
    assert released(shipped, "phonemes-release") == PHONEMES


def test_the_rounds_of_remote_phonemes_keep_their_names(shipped: Project) -> None:
    """The clients are elsewhere and were invited by these names."""
    assert released(shipped, "phonemes-remote") == REMOTE


def test_the_release_of_directions_keeps_its_names(tmp_path: Path) -> None:
    """Both rounds of protocol direct, arm two."""
    project = production.write(tmp_path, **arm("two"))
    assert released(project, production.NAME) == DIRECT
