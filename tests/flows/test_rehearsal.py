"""Rehearsals: a whole day of a production pipeline, which touches nothing real.

They start commands: a rehearsal changes its environment, and serves an intake.
"""

import hashlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from curvote.cli.commands import rehearsal
from tests import plain
from tests.exchange import FAR, NAME
from tests.house import ROOT
from tests.processes import run_command, start_command, until

WATCH = {"mode": "production", "protocol": "monitor"}
WATCH |= {"monitor": {"question": "class", "classes": ["a", "b", "c"]}}
SHIPPED = (ROOT / "pipelines.yaml").read_text(encoding="utf-8")
REFUSALS = (
    "twice its cap, and refuses at home: there is no room",
    "stranger's signature and refuses at home: server",
    "another task and refuses at home: the invitation is to task",
    "once more and refuses at home: there is no room",
    "the server answers 403 unknown invitation",
    "the server answers 403 wrong seal",
    "the server answers 422 impossible message",
    "the server answers 400 unreadable",
    "the server answers 413 too large",
    "the server answers 201 accepted",
    "the server answers 200 accepted before",
)


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a project that has spent, an owner's state, and no more."""
    for name in ("server.key", "ledger.sqlite", "intake.sqlite", "records.sqlite"):
        file = tmp_path / "real" / "project" / "data" / "state" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(64))
    owner = tmp_path / "real" / "owner"
    (owner / "curvote").mkdir(parents=True)
    (owner / "curvote" / "ledger.sqlite").write_bytes(os.urandom(64))
    monkeypatch.setenv("XDG_STATE_HOME", str(owner))
    # Nobody answers there: a rehearsal that looked would fail.
    monkeypatch.setenv("CURVOTE_INTAKE_URL", "postgresql://u:p@127.0.0.1:9/real")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()
    return tmp_path / "real"


def digests(root: Path) -> dict[str, str]:
    """Return the digest of each file, and the mode and time of each entry."""
    return {
        str(path.relative_to(root)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        )
        + str((path.lstat().st_mode, path.lstat().st_mtime_ns))
        for path in (root, *root.rglob("*"))
    }


def rehearsed(real: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Rehearse; the real project and its owner stay as they are, byte for byte."""
    before = digests(real)
    done = run_command("rehearse", *words, "--project", str(real / "project"))
    assert digests(real) == before
    assert not [*(real.parent / "temporary").iterdir()]
    return done


@pytest.mark.parametrize(
    ("pipeline", "rounds", "late"),
    [
        (NAME, 2, 400),
        ("watch", 2, 201),
        pytest.param("heart-remote", 1, 200, marks=pytest.mark.faults),
        pytest.param("labels-remote", 1, 410, marks=pytest.mark.faults),
        pytest.param("phonemes-remote", 2, 410, marks=pytest.mark.faults),
    ],
)
def test_a_day_shows_every_refusal_and_spends_nothing(
    real: Path, pipeline: str, rounds: int, late: int
) -> None:
    """In each round, of curves, tables and labels; a real intake is not looked at.

    Of a watch over a model there are two windows, and what comes late counts.
    """
    sealed = {"intake": {"sealed": True}}
    plain.write(real / "project", **{NAME: FAR | sealed, "watch": WATCH | sealed})
    if pipeline not in {NAME, "watch"}:
        (real / "project" / "pipelines.yaml").write_text(SHIPPED)
    done = rehearsed(real, pipeline, *["--clients", "20"] * (pipeline == NAME))
    assert done.returncode == 0, done.stderr
    for words in (*REFUSALS, f"close: the server answers {late}"):
        assert done.stdout.count(words) >= rounds, words
    if pipeline == "watch":
        assert done.stdout.count("It counts in the window that asked") == 4
        assert done.stdout.count("has 64 messages of 64 honest clients") == 1
    second = done.stdout.count("answers another task: the server answers 409")
    assert second == rounds - 1
    assert "Nothing was spent" in done.stdout


def test_a_server_that_takes_too_much_is_found_out(
    real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: numbers that an honest client could have sent are taken.

    All else of a day with tables is refused as it should be.
    """
    (real / "project" / "pipelines.yaml").write_text(SHIPPED)
    monkeypatch.setattr(rehearsal, "_enlarge", lambda value: value)
    done = rehearsed(real, "heart-remote")
    assert done.returncode == 1
    assert "no honest client draws: 201 in place of 422" in done.stderr
    missing = [words for words in REFUSALS if words not in done.stdout]
    assert missing == ["the server answers 422 impossible message"]


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.faults)]
)
def test_one_that_is_ended_midway_touches_nothing(real: Path, how: int) -> None:
    """Its intake ends with it; only a killed one leaves its own folder behind."""
    plain.write(real / "project", **{NAME: FAR})
    before, temporary = digests(real), real.parent / "temporary"
    words = "rehearse", NAME, "--project", str(real / "project")
    with start_command(*words, stdout=-1, stderr=-3) as process:
        assert process.stdout is not None
        lines = iter(process.stdout)
        assert any("201 accepted" in line for line in lines)
        process.send_signal(how)
        rest = [*lines]  # which ends when the intake has ended, too
        assert not any("Nothing was spent" in line for line in rest)
    assert digests(real) == before
    assert until(lambda: bool([*temporary.iterdir()]) == (how == signal.SIGKILL), 5)


def test_what_asks_nobody_is_refused(
    real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to type in its place; nothing is left of an attempt.

    The broken twin, which plays in the real project's folder, is caught.
    """
    local = {key: FAR[key] for key in FAR.keys() - {"intake"}}
    local |= {"ledger": {"per_client": {"epsilon": 4}}}
    local["source"] = {"name": "simulated"}
    plain.write(real / "project", study=plain.of("majority"), local=local, far=FAR)
    for words, sentence in (
        (["study"], "`curvote run study` runs it"),
        (["local"], "`curvote plan local` says what a run would release"),
        ([NAME, "--clients", "5"], "needs 20 messages of a round"),
        ([NAME, "--keep", str(real)], "Name a folder to be made"),
    ):
        done = rehearsed(real, *words)
        assert done.returncode == 2
        assert sentence in done.stderr, done.stderr
    monkeypatch.setattr(rehearsal.tempfile, "mkdtemp", lambda **_: real / "project")
    with pytest.raises(AssertionError, match="more items"):
        rehearsed(real, "study")
