"""Clocks that jump and files that change under a run: said in words, nothing lost."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.ledger import chain
from curvote.ledger.book import Ledger
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import evidence
from curvote.pipeline.run import execution
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import artifact
from tests import plain, production, town
from tests.processes import in_child

JUMPS = pytest.mark.parametrize("hours", [-3, 365 * 24])


@JUMPS
def test_a_release_killed_before_the_clock_jumped_is_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Published and reserved: the next run confirms it, whatever the time says."""
    project = production.write(tmp_path)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "confirm", killed)
        with pytest.raises(KeyboardInterrupt):
            production.run(project)
    when = datetime.now(UTC) + timedelta(hours=hours)
    monkeypatch.setattr(chain, "utc_now", lambda: when.isoformat(timespec="seconds"))
    made = production.run(project)
    entries = production.ledger_entries(project)
    assert {entry.state for entry in entries} == {"confirmed"}
    assert len(entries) == len(production.releases(made))
    assert not evidence.ledger_problems(project)


def test_a_raw_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    """Nothing is stored or reserved; the same command then reads what is there."""
    project = town.write(tmp_path)
    town.export(tmp_path, str)
    configured = PipelinesFile(project).configure_pipeline(town.NAME)
    first = make_plan(project, configured, fetch=True).steps[0]
    path = tmp_path / "people.csv"
    path.write_text(path.read_text().replace("well", "ill", 1))
    with pytest.raises(UserError, match=r"people\.csv changed while it was read; run"):
        execute_step(project, first)
    assert not project.ledger.exists()
    assert not artifact(project, "ingest", first.key).path.exists()
    town.run(project)
    assert {entry.state for entry in production.ledger_entries(project)} == {
        "confirmed"
    }


def test_a_raw_file_that_changes_after_it_was_surveyed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read in two passes; no block of the other content is gone on from."""
    project = town.write(tmp_path)
    town.export(tmp_path, str)
    configured = PipelinesFile(project).configure_pipeline(town.NAME)
    first = make_plan(project, configured, fetch=True).steps[0]
    path = tmp_path / "people.csv"
    before, compute = path.read_text(), execution.compute_block

    def meanwhile(*given: Any) -> None:
        path.write_text(before.replace("well", "ill", 1))
        compute(*given)

    with monkeypatch.context() as patch:
        patch.setattr(execution, "compute_block", meanwhile)
        with pytest.raises(UserError, match=r"people\.csv changed while it was read"):
            execute_step(project, first)
    assert not artifact(project, "ingest", first.key).path.exists()
    path.write_text(before)
    execute_step(project, first)
    labels = artifact(project, "ingest", first.key).columns("clients", ())["label"]
    assert labels.sum() == before.count(",ill")


def test_two_runs_of_one_pipeline_at_once_agree(project: Project) -> None:
    """Each artifact is made once; both runs complete with the same tables."""
    children = [in_child(lambda: plain.run(project)) for _ in range(2)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    first, second = records.load_records(project)
    assert (first.status, second.status) == ("completed", "completed")
    assert plain.hashes(project, first) == plain.hashes(project, second)
    assert first.sequence != second.sequence
    assert not list(project.artifacts.glob("*/.*"))
