"""Notes of parsed code: the same digests, and never those of another content."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from curvote.run.plan import fingerprint
from curvote.run.plan.code_notes import Notes

MODULES = ["curvote.protocols.mrma.system"]


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notes]:
    """Return notes in a folder of their own, with nothing parsed before."""
    made = Notes()
    made.open(tmp_path / "code.json")
    monkeypatch.setattr(fingerprint, "NOTES", made)
    fingerprint._parsed.cache_clear()
    yield made
    fingerprint._parsed.cache_clear()


def again(notes: Notes) -> Notes:
    """Return what another process would read."""
    read = Notes()
    assert notes.file
    read.open(notes.file)
    return read


def test_notes_give_the_digests_that_parsing_gives(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no file is parsed a second time, by whatever process."""
    parsed = fingerprint.of_code(MODULES)
    monkeypatch.setattr(fingerprint, "NOTES", again(notes))
    fingerprint._parsed.cache_clear()
    monkeypatch.setattr(fingerprint.ast, "dump", pytest.fail)
    assert fingerprint.of_code(MODULES) == parsed


def test_a_changed_file_is_parsed_anew(notes: Notes, tmp_path: Path) -> None:
    """Also one of equal size and date: another file has another inode, or change."""
    path = tmp_path / "one.py"
    path.write_text("x = 1\n")
    notes.add(path, "digest", ("curvote.errors",))
    assert notes.find(path) == ("digest", ("curvote.errors",))
    before = path.stat()
    other = tmp_path / "two.py"
    other.write_text("x = 2\n")
    other.replace(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert notes.find(path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"by": 1, "files": {}}', '{"by": 1}'])
def test_notes_that_cannot_be_used_are_passed_over(notes: Notes, text: str) -> None:
    """Of another Python, another way of parsing, or damaged."""
    fingerprint.of_code(MODULES)
    assert notes.file
    assert again(notes).known
    notes.file.write_text(text)
    assert again(notes).known == {}


def test_without_a_folder_nothing_is_written(notes: Notes, tmp_path: Path) -> None:
    """A plan in a fresh project leaves no trace."""
    notes.open(tmp_path / "absent" / "code.json")
    fingerprint._parsed.cache_clear()
    assert fingerprint.of_code(MODULES)
    assert not (tmp_path / "absent").exists()


def test_notes_hold_names_and_digests_only(notes: Notes) -> None:
    """No code and no data stand there."""
    fingerprint.of_code(MODULES)
    assert notes.file
    told = json.loads(notes.file.read_text())
    assert all(len(digest) == 64 for _, digest, _ in told["files"].values())
