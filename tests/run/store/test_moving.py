"""A project of an earlier curvote, whose raw tables stand among the others."""

import shutil
from pathlib import Path

import pytest

from curvote.flows.serving.retention import collect_garbage
from curvote.pipeline.config.project import Project
from curvote.pipeline.release import evidence
from curvote.pipeline.store import artifacts
from curvote.pipeline.store.artifacts import all_folders, artifact
from curvote.pipeline.store.garbage import RetentionLimits
from tests import plain, production


@pytest.fixture
def earlier(tmp_path: Path) -> Project:
    """Return a project that has released, as an earlier curvote left it."""
    project = production.write(tmp_path)
    production.run(project)
    for stage in project.clients.iterdir():
        stage.rename(project.artifacts / stage.name)
    project.clients.rmdir()
    for path in project.artifacts.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return project


def test_raw_tables_are_moved_and_nothing_is_made_again(
    earlier: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said once; same names, closed to others; nothing runs, nothing is released."""
    before = production.confirmed(earlier)
    made = production.run(earlier)
    assert "moved 2 artifacts with raw tables" in capsys.readouterr().err
    assert {step.action for step in made.steps} == {"reuse"}
    assert production.confirmed(earlier) == before
    assert evidence.ledger_problems(earlier) == []
    paths = [earlier.clients, *earlier.clients.rglob("*")]
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in paths}
    assert modes == {(True, 0o700), (False, 0o600)}
    left = {f.parent.name for f in earlier.artifacts.glob("*/*")}
    assert left == {"privatize", "train", "evaluate", "aggregate"}
    production.run(earlier)
    assert capsys.readouterr().err == ""


def test_a_kill_between_two_moves_costs_nothing(
    earlier: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each artifact is here or there; the next run moves the rest."""
    real, moved = artifacts._move_folder, []

    def dies_at_the_second(project: Project, folder: Path) -> None:
        moved.append(folder)
        if len(moved) == 2:
            raise KeyboardInterrupt
        real(project, folder)

    with monkeypatch.context() as patch:
        patch.setattr(artifacts, "_move_folder", dies_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            production.run(earlier)
    assert {s.action for s in production.run(earlier).steps} == {"reuse"}
    assert len(list(earlier.clients.glob("*/*"))) == 2


def test_a_copy_that_comes_back_is_set_aside(earlier: Project) -> None:
    """A restored backup neither replaces what is there nor stays open to others."""
    (step, *_) = production.plan(earlier).steps
    there = artifact(earlier, "ingest", step.key)
    digest = there.manifest["tables"]["clients"]["sha256"]
    shutil.copytree(there.path, earlier.artifacts / "ingest" / step.key)
    assert {s.action for s in production.run(earlier).steps} == {"reuse"}
    assert not list(earlier.artifacts.glob("ingest/*"))
    names = {f.name for f in all_folders(earlier) if f.parent.name == "ingest"}
    assert names == {step.key, f".altered-{step.key}-0"}
    again = artifact(earlier, "ingest", step.key)
    assert again.manifest["tables"]["clients"]["sha256"] == digest


def test_a_stage_that_was_renamed_is_known_by_its_manifest(tmp_path: Path) -> None:
    """Protocol clean once called a stage train, as others do on the server's side."""
    few = {"replicates": 1, "learners": ["centroid"]}
    project = plain.write(tmp_path, tiny=plain.of("clean") | few)
    plain.run(project)
    (fit,) = project.clients.glob("fit/*")
    place = project.artifacts / "train" / fit.name
    place.parent.mkdir(parents=True)
    fit.rename(place)
    artifacts.migrate_raw_artifacts(project)
    assert (project.clients / "train" / fit.name / "manifest.json").is_file()
    assert not place.exists()
    (freed,) = collect_garbage(project, limits=RetentionLimits(), dry_run=True)
    assert len(freed.paths) == 1


def test_a_backup_that_came_back_open_is_closed(tmp_path: Path) -> None:
    """Even where nothing is left to compute."""
    project = plain.write(tmp_path, tiny=plain.TINY | {"replicates": 1})
    plain.run(project)
    project.clients.chmod(0o755)
    assert plain.to_run(plain.plan(project)) == set()
    assert project.clients.stat().st_mode & 0o777 == 0o700


def test_what_is_not_curvotes_stays(tmp_path: Path) -> None:
    """Folders of released artifacts, and files somebody put there, are not touched."""
    project = Project(tmp_path)
    other = project.artifacts / "privatize" / "mine"
    other.mkdir(parents=True)
    (project.artifacts / "notes.txt").touch()
    artifacts.migrate_raw_artifacts(project)
    assert other.is_dir()
    assert not project.clients.exists()
