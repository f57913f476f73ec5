"""Who is told that a run failed, waits or was missed, and how little."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from curvote.base.errors import UserError
from curvote.flows.notices import failures_noticed, report_missed, send_notice
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.yaml_document import as_yaml, parse_value
from tests import plain

KEEP = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())"


def told(project: Project, command: list[str], **more: Any) -> Path:
    """Let a project's file ask for notices by a command; return where it writes."""
    values = parse_value(project.pipelines_file.read_text())
    values["runtime"] = {"notify": {"command": command, **more}}
    project.pipelines_file.write_text(as_yaml(values))
    return project.root / "told.json"


def keeping(project: Project, **more: Any) -> Path:
    """Let the command keep what it is given; return where."""
    place = project.root / "told.json"
    return told(project, [sys.executable, "-c", KEEP, str(place)], **more)


def test_the_command_hears_what_happened(project: Project) -> None:
    """One JSON object on standard input: the pipeline, the event, the time."""
    place = keeping(project)
    send_notice(project, "failed", "tiny")
    notice = json.loads(place.read_text())
    assert notice.keys() == {"event", "pipeline", "time"}
    assert (notice["event"], notice["pipeline"]) == ("failed", "tiny")


def test_only_what_is_asked_for_is_told(project: Project) -> None:
    """``on`` names the events; a blocked run is told where it says so."""
    place = keeping(project, on=["missed"])
    send_notice(project, "failed", "tiny")
    send_notice(project, "blocked", "tiny")
    assert not place.exists()
    said: list[str] = []
    fact = {"count": 3, "first": "2026-11-22T06:00:00+00:00", "made_up": False}
    report_missed(
        project,
        lambda text, *_, **__: said.append(text),
        "tiny",
        fact | {"last": "2026-11-22T08:00:00+00:00"},
    )
    assert json.loads(place.read_text())["count"] == 3
    latest = "the latest at 2026-11-22 08:00:00 UTC; none makes up for it"
    assert said == [f"missed 3 scheduled runs, {latest}"]


def test_no_word_of_an_error_is_told(project: Project) -> None:
    """A message may name a file or a value; a notice says that there was one."""
    place = keeping(project)
    with pytest.raises(UserError), failures_noticed(project, "tiny"):
        raise UserError("client 4711 has value 0.25")
    assert "4711" not in place.read_text()
    assert json.loads(place.read_text())["event"] == "failed"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([sys.executable, "-c", "raise SystemExit(3)"], "exit code 3"),
        (["/no/such/command"], "/no/such/command: No such file"),
    ],
)
def test_a_notice_that_fails_fails_nothing_else(
    project: Project,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    said: str,
) -> None:
    """It is one line of warning."""
    told(project, command)
    send_notice(project, "failed", "tiny")
    warning = capsys.readouterr().err
    assert said in warning
    assert warning.count("\n") == 1


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
def test_addresses_come_from_the_environment_only(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Apprise is given each; one it does not know is a warning without the address."""
    apprise = pytest.importorskip("apprise")
    sent: list[str] = []
    monkeypatch.setattr(
        apprise.Apprise,
        "notify",
        lambda _, body, title, notify_type: (
            sent.append(notify_type + title + body) or 1
        ),
    )
    monkeypatch.setenv("CURVOTE_NOTIFY_URLS", "json://127.0.0.1:9/secret")
    send_notice(project, "failed", "tiny")
    assert len(sent) == 1
    assert "tiny failed" in sent[0]
    monkeypatch.setenv("CURVOTE_NOTIFY_URLS", "nothing://secret")
    send_notice(project, "failed", "tiny")
    warning = capsys.readouterr().err
    assert "CURVOTE_NOTIFY_URLS" in warning
    assert "secret" not in warning


def test_a_file_that_cannot_be_read_tells_the_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that failed because of it must not go unnoticed."""
    project = plain.write(tmp_path, tiny=plain.TINY)
    project.pipelines_file.write_text("pipelines: [")
    seen: list[dict[str, Any]] = []
    monkeypatch.setenv("CURVOTE_NOTIFY_URLS", "json://127.0.0.1:9")
    monkeypatch.setattr(
        "curvote.flows.notices._send_apprise", lambda _urls, notice: seen.append(notice)
    )
    send_notice(project, "failed", "tiny")
    assert [notice["event"] for notice in seen] == ["failed"]
