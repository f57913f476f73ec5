"""`curvote data`: which raw files there are, and whether they are sound."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from curvote.datasets import raw, registry
from curvote.errors import UserError
from flows.cli_data import app
from tests.phoneme_file import TEXT, bad_crc, extra_row, put


def curvote_data(root: Path, *words: str) -> Result:
    """Run `curvote data` on the project at ``root``."""
    return CliRunner().invoke(app, [*words, "--project", str(root)])


def test_verify_prints_one_json_document(root: Path) -> None:
    """Statuses are ok, absent, changed and damaged; only the last two fail."""
    states: list[tuple[bytes | str | None, str, int]] = [
        (None, "absent", 0),
        (TEXT, "ok", 0),
        (extra_row(), "changed", 1),
        (bad_crc(), "damaged", 1),
    ]
    for content, status, code in states:
        if content is not None:
            put(root, content)
        result = curvote_data(root, "verify", "--json")
        (row,) = json.loads(result.stdout)
        assert set(row) == {"source", "file", "status", "sha256", "message"}
        assert (row["status"], result.exit_code) == (status, code)
        assert (row["sha256"] is None) == (status in {"absent", "damaged"})


def test_verify_never_downloads(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An absent file stays absent."""
    monkeypatch.setattr(raw, "fetch", pytest.fail)
    assert curvote_data(root, "verify").exit_code == 0


def test_list_and_fetch_say_what_is_there(root: Path) -> None:
    """A simulated set needs no file; an unknown name gets a suggestion."""
    path = put(root, TEXT)
    listed = curvote_data(root, "list").stdout
    assert str(path) in listed
    assert all(name in listed for name in registry.DATASETS)
    fetched = curvote_data(root, "fetch", "phonemes").stdout
    assert str(path) in fetched
    assert raw.digest(path) in fetched
    nothing = curvote_data(root, "fetch", "simulated")
    assert "nothing to fetch" in nothing.stdout
    wrong = curvote_data(root, "fetch", "phoneme")
    assert isinstance(wrong.exception, UserError)
