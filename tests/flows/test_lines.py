"""What a run says: plain lines, JSON, or messages to whoever serves it."""

import contextlib
import json
from pathlib import Path

import pytest

from curvote.flows import lines


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CURVOTE_LOG_FORMAT", "CURVOTE_LINES"):
        monkeypatch.setenv(name, "text")
        monkeypatch.delenv(name)


def test_a_line_of_json_has_every_fact(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Facts that are known stand in each line, those that are not are null."""
    monkeypatch.setenv("CURVOTE_LOG_FORMAT", "json")
    with lines.shared_facts(pipeline="demo", run="r1"):
        lines.write_line("done", stage="train", replicates="0-9", done=3)
    lines.write_line("over", "warning")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (
        first.items()
        >= {
            "pipeline": "demo",
            "run": "r1",
            "stage": "train",
            "cell": None,
            "replicates": "0-9",
            "done": 3,
            "message": "done",
            "level": "info",
        }.items()
    )
    assert {*lines.LINE_FACTS} <= second.keys()
    assert second["pipeline"] is None
    assert second["level"] == "warning"


def test_plain_lines_are_the_message_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """They go to standard error: standard output is for answers."""
    with lines.shared_facts(pipeline="demo"):
        lines.write_line("done", stage="train")
    assert capsys.readouterr() == ("", "done\n")


def test_a_child_is_heard_through_the_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says comes out whole, in order; what is no message is left out."""
    pipe = lines.LinePipe(tmp_path / "pipe")
    for name, value in pipe.variables().items():
        monkeypatch.setenv(name, value)
    lines.write_line("one")
    with pipe.path.open("w") as file:
        file.write('no json\n[1]\n{"line"')
    assert [each["line"]["message"] for each in pipe.messages()] == ["one"]
    with pipe.path.open("w") as file:
        file.write(': {"message": "two"}}\n')
    assert [each["line"]["message"] for each in pipe.messages()] == ["two"]
    pipe.close()
    assert not pipe.path.exists()


def test_nobody_at_the_pipe_holds_up_no_run(tmp_path: Path) -> None:
    """A reader that has gone, or that never reads, costs the line and nothing else."""
    lines.send_message(tmp_path / "none", {"line": {}})
    pipe = lines.LinePipe(tmp_path / "pipe")
    for _ in range(2000):
        lines.send_message(pipe.path, {"line": {"message": "x" * 100}})
    assert 0 < len([*pipe.messages()]) < 2000
    pipe.close()


def test_a_served_line_names_its_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    """Runs of several pipelines share one log."""
    from curvote.flows.serving.service import _print_line

    _print_line(lines.make_line("done", pipeline="demo"))
    _print_line(lines.make_line("server is back"))
    assert capsys.readouterr().out == "demo: done\nserver is back\n"


def test_a_log_on_a_full_disk_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that cannot be written is lost, and its schedule is not."""
    from curvote.flows.serving.service import _print_line

    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        _print_line(lines.make_line("done", pipeline="demo"))
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            full.close()
