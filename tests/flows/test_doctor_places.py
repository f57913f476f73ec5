"""Where `curvote doctor` looks for room, and whether it is let in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from curvote.cli import doctor
from curvote.flows import machine
from curvote.flows.machine import stop_cause
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import locations
from tests import object_store, plain


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Return the address of an object store."""
    with object_store.started() as found:
        yield found


def told(project: Project, check: str) -> list[tuple[str, str]]:
    """Return status and words of one check."""
    found = doctor.run_checks(project)
    return [(each.status, each.found) for each in found if each.check == check]


def test_an_object_store_is_really_written(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the right to write, no run could store anything."""
    object_store.point_at(monkeypatch, address)
    object_store.bucket(address)
    project = object_store.project(tmp_path, tiny=plain.TINY)
    assert told(project, "object store") == [
        ("ok", f"{object_store.ROOT} can be written")
    ]
    locations.check_writable.cache_clear()
    with object_store.answering(403) as other:
        object_store.point_at(monkeypatch, other)
        ((status, words),) = told(project, "object store")
    assert status == "failed"
    assert "no right to write it" in words


def test_a_folder_is_no_object_store(project: Project) -> None:
    """What does not apply is left out."""
    assert told(project, "object store") == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no file system without room")
def test_raw_files_may_be_on_a_full_disk(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written there; it is no reason for anything."""
    monkeypatch.setattr(Project, "raw", Path("/proc"))
    assert machine.full_folder(project, 1) is None
    assert machine.full_folder(project, 1, Path("/proc")) == Path("/proc")
    assert stop_cause(project, ZeroDivisionError()) is None
    assert {status for status, _ in told(project, "file system")} == {"ok"}
