"""Manifests, the append-only copy and run records tell of what a ledger forgot."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.ledger.book import Ledger
from curvote.ledger.traces import Copies
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import evidence
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.store import records
from tests import production
from tests.processes import in_child
from tests.town import (
    NAME,
    refused,
    restore,
    run,
    saved,
)


def _ledger_and_releases(project: Project) -> None:
    restore(project, None)
    for stage in ("privatize", "evaluate"):
        shutil.rmtree(project.artifacts / stage)


def _but_the_copy(project: Project) -> None:
    _ledger_and_releases(project)
    records.records_path(project).unlink()


def _but_the_records(project: Project) -> None:
    _ledger_and_releases(project)
    evidence.copies(project).path.unlink()


@pytest.mark.parametrize(
    ("lose", "told_by"),
    [
        (_ledger_and_releases, "releases.jsonl"),
        (_but_the_copy, "releases.jsonl"),
        (_but_the_records, "the record of run"),
    ],
)
def test_a_ledger_deleted_with_its_releases_is_still_missed(
    town: Project, lose: Callable[[Project], None], told_by: str
) -> None:
    """The copy tells of them, or the record of the run; the check says it as well."""
    lose(town)
    said = refused(town)
    assert "is gone" in said
    assert told_by in said
    assert "Put the newest ledger back" in said
    lines = evidence.ledger_problems(town)
    assert len(lines) == 2
    assert all(told_by in line and "is not in the ledger" in line for line in lines)


def test_an_older_ledger_is_found_by_each_trace_alone(
    town: Project, tmp_path: Path
) -> None:
    """The manifest's head, the copy's head, the record: each of them is enough."""
    now = saved(town)
    for kept in ("artifacts", "releases.jsonl", "runs"):
        restore(town, None)
        root = tmp_path / "only" / kept
        shutil.copytree(town.root, root, ignore=shutil.ignore_patterns("only"))
        project = Project(root)
        with Ledger(project.ledger):
            pass  # a fresh one
        if kept != "artifacts":
            for stage in ("privatize", "evaluate"):
                shutil.rmtree(project.artifacts / stage)
        if kept != "releases.jsonl":
            evidence.copies(project).path.unlink()
        if kept != "runs":
            records.records_path(project).unlink()
        assert "Put the newest ledger back" in refused(project)
        restore(town, now)


def test_the_copy_alone_is_written_again_aloud(
    town: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the ledger, line for line; a plan writes nothing."""
    path = evidence.copies(town).path
    before = path.read_bytes()
    path.unlink()
    make_plan(town, PipelinesFile(town).configure_pipeline(NAME))
    assert not path.exists()
    run(town)
    assert path.read_bytes() == before
    assert "was written again from the ledger" in capsys.readouterr().err
    run(town)
    assert "releases.jsonl" not in capsys.readouterr().err


def test_the_copy_says_what_the_ledger_does_and_names_nobody(town: Project) -> None:
    """A line a reservation and settlement, for the owner's eyes; no id, no digest."""
    path = evidence.copies(town).path
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["state"] for line in lines] == ["reserved", "confirmed"] * 2
    assert [line["clients"] for line in lines] == [60, 60, 80, 80]
    columns = {"release", "population", "clients", "epsilon", "delta", "state", "head"}
    columns |= {"sequence", "ledger", "format"}
    assert {frozenset(line) for line in lines} == {frozenset(columns)}
    assert path.stat().st_mode & 0o777 == 0o600
    with Ledger(town.ledger) as ledger:
        assert all(ledger.knows(line["head"]) for line in lines)
        heads = [line["head"] for line in lines]
        for entry in ledger.entries():
            manifest = json.loads(
                (town.root / str(entry.place) / "manifest.json").read_text()
            )
            assert manifest["release"]["head"] in heads


def test_a_torn_or_missing_line_heals(town: Project) -> None:
    """A kill between the ledger and the copy blocks nobody and loses nothing."""
    path = evidence.copies(town).path
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for left in (b"".join(lines[:-1]), whole[:-40], b"".join(lines[:1])):
        path.write_bytes(left)
        assert evidence.ledger_problems(town) == []
        with Ledger(town.ledger) as ledger:
            evidence.copies(town).update(ledger)
            evidence.copies(town).update(ledger)
        assert path.read_bytes().startswith(left)
        assert {line["head"] for line in evidence.copies(town).second.lines()} == {
            json.loads(line)["head"] for line in lines
        }
    run(town)


def test_a_run_record_of_a_study_tells_of_no_release(town: Project) -> None:
    """Only production needs the ledger."""
    runs = records.load_records(town)
    assert runs
    for record in runs:
        records.save_record(town, _as_study(record))
    _ledger_and_releases(town)
    evidence.copies(town).path.unlink()
    assert evidence.ledger_problems(town) == []


def _as_study(record: records.RunRecord) -> records.RunRecord:
    return records.RunRecord(**(vars(record) | {"config": {"mode": "study"}}))


def test_without_its_second_copy_nothing_is_released(town: Project) -> None:
    """What cannot be written down twice is not reserved; the message names the file."""
    path = evidence.copies(town).path
    path.unlink()
    path.mkdir()
    with pytest.raises(UserError, match=r"releases\.jsonl, the second copy"):
        run(town, recorded=False)


@pytest.mark.parametrize("call", range(1, 7))
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_beside_the_copy_heals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int, after: bool
) -> None:
    """Before or after each of its writes: the next run goes on, the copy is whole."""
    project = production.write(tmp_path)
    write_copies, calls = Copies.update, iter(range(1, 100))

    def dies(*given: Any) -> int:
        now = next(calls) == call
        if now and not after:
            os._exit(9)
        done = write_copies(*given)
        if now:
            os._exit(9)
        return done

    with monkeypatch.context() as patch:
        patch.setattr(Copies, "update", dies)
        os.waitpid(in_child(lambda: production.run(project)), 0)
    production.run(project)
    assert len(production.confirmed(project)) == 2
    assert evidence.ledger_problems(project) == []
    with Ledger(project.ledger) as ledger:
        heads = [movement.head for movement in ledger.movements()]
    assert [line["head"] for line in evidence.copies(project).second.lines()] == heads
