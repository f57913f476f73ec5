"""Figures for Prometheus: counts and dates, no value of a client."""

import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.flows import display
from curvote.flows.server.launch import listen
from curvote.flows.serving.metrics import ProjectMetrics, serve_metrics
from curvote.ledger.book import Ledger
from curvote.pipeline.config.project import Project


def figures(project: Project, **counted: int) -> dict[str, float]:
    """Return every figure of a project, by its name and labels."""
    asked = ProjectMetrics(project, serving=True)
    for child, count in counted.items():
        asked.count("serve_restarts", child, count)
    found = {}
    for metric in asked.collect():
        for sample in metric.samples:
            labels = ",".join(sample.labels.values())
            found[f"{sample.name}[{labels}]"] = sample.value
    return found


def test_runs_are_counted_by_how_they_ended(done: Project) -> None:
    """With the date of the last success."""
    found = figures(done, runner=2)
    assert found["curvote_runs[tiny,completed]"] == 1
    assert found["curvote_runs[tiny,failed]"] == 0
    assert found["curvote_last_success_timestamp_seconds[tiny]"] > 1.7e9
    assert found["curvote_serve_up[]"] == 0
    assert found["curvote_serve_restarts_total[runner]"] == 2


def test_the_least_room_of_a_population_is_told_and_no_client(
    project: Project,
) -> None:
    """The room of whoever spent most, anew after each release."""
    project.state.mkdir(parents=True, mode=0o700)
    with Ledger(project.ledger) as ledger:
        ledger.set_cap("town", Budget(3.0))
        for number, ids in enumerate((["a", "b"], ["b"])):
            ledger.reserve(f"r{number}", ids, Budget(1.0), population="town", facts={})
            found = figures(project)
            assert found["curvote_ledger_room_epsilon[town]"] == 2 - number
    assert found["curvote_ledger_room_delta[town]"] == 0


def test_an_empty_project_has_figures_too(project: Project) -> None:
    """Nothing is made by asking."""
    assert figures(project)["curvote_serve_scheduling[]"] == 0
    assert not project.ledger.exists()
    assert not project.intake.exists()


def test_they_are_served_on_this_machine(done: Project) -> None:
    """As Prometheus reads them; a port that is taken is named."""
    with listen(0) as free:
        port = free.getsockname()[1]
        with pytest.raises(UserError, match="--metrics-port"):
            serve_metrics(ProjectMetrics(done), port)
    serve_metrics(ProjectMetrics(done), port)
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    assert 'curvote_runs{pipeline="tiny",status="completed"} 1.0' in text
    for name in ("evil.example", f"evil.example:{port}", "127.0.0.1:1"):
        asked = Request(f"http://127.0.0.1:{port}/metrics", headers={"Host": name})
        with pytest.raises(HTTPError, match="403"):
            urlopen(asked, timeout=30)


def test_pace_says_rate_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that an earlier run left are no pace of this one."""
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    one = display.StagePace(100.0)
    assert one.to_text(40, 100) == ""
    clock[0] += 10
    assert one.to_text(60, 100) == "2/s, about 20 s left"
    assert one.to_numbers(60, 100) == {"rate": 2.0, "remaining": 20.0}
    one.publish("train", 60, 100)
    assert display.current_progress == {
        "stage": "train",
        "blocks_done": 60,
        "blocks": 100,
        "remaining_seconds": 20.0,
    }
    clock[0] += 3590
    assert one.to_text(61, 100_000).endswith("h left")
