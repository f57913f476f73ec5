"""What keeps schedules alive, with children that a test ends as it likes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from curvote.durable import owner_folder
from curvote.run.project import Project
from flows import heartbeat, lines, supervisor
from flows.children import Child
from flows.server_launch import Launch
from flows.server_state import DATABASE, READY
from flows.supervisor import Supervisor
from flows.told import Told
from tests import plain

SLEEPER = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
HOURLY = {"interval": 3600.0, "timezone": "UTC"}


def sleeper() -> subprocess.Popen[bytes]:
    """Start a process that ends with its standard input."""
    return subprocess.Popen(SLEEPER, stdin=subprocess.PIPE, start_new_session=True)


@dataclass
class Watched:
    """A supervisor of two processes that sleep, and what it said."""

    it: Supervisor
    said: list[str] = field(default_factory=list)
    missed: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    orders: list[dict[str, Any]] = field(default_factory=list)
    state: int | None = READY
    clock: float = 1.8e9

    def tick(self, seconds: float = 0.0) -> None:
        """Look again after a time, when every wait is over."""
        self.clock += seconds
        for child in (self.it.server, self.it.runner):
            if child is not None and child.process is None:
                child.due = 0.0
        self.it._asked = 0.0
        self.it.tick()

    def up(self) -> None:
        """Let the runner say that it is at work."""
        lines.send(self.it.pipe.path, {"registered": ["tiny"]})
        lines.send(self.it.pipe.path, {"polled": time.monotonic()})
        self.tick()


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Yield a supervisor whose server answers; what is given to the runner is kept."""
    project = plain.write(tmp_path, tiny=plain.TINY | {"schedule": {"interval": 3600}})
    made = Watched.__new__(Watched)
    said: list[str] = []
    missed: list[tuple[str, dict[str, Any]]] = []
    told = Told(
        line=lambda line: said.append(line["message"]),
        missed=lambda name, fact: missed.append((name, fact)),
    )
    owner_folder(project.state)
    it = Supervisor(
        project=project,
        url="http://127.0.0.1:9/api",
        schedules={"tiny": HOURLY},
        flow="module:flow",
        launch=Launch(project.state / "prefect", "secret"),
        server=Child("Prefect's server", sleeper),
        runner=Child("the runner of schedules", sleeper),
        pipe=lines.Pipe(project.state / "serve.pipe"),
        told=told,
        clock=lambda: made.clock,
    )
    made.__init__(it, said, missed)  # type: ignore[misc]
    monkeypatch.setattr(supervisor, "ask", lambda _url: made.state)
    tell = it.runner.tell
    monkeypatch.setattr(
        it.runner, "tell", lambda order: (made.orders.append(order), tell(order))
    )
    assert it.server is not None
    it.server.start()
    it._begin()
    made.tick()
    yield made
    for child in (it.server, it.runner):
        child.end(0.0)
    it.pipe.close()


def end(child: Child | None) -> None:
    """Kill a child and wait until it is seen to be dead."""
    assert child is not None
    assert child.process is not None
    child.process.kill()
    child.process.wait()


def renewed(child: Child) -> None:
    """Let a child end as a runner does that was told to renew and is idle."""
    assert child.process is not None
    assert child.process.stdin is not None
    child.process.stdin.close()
    child.process.wait()


def test_a_dead_server_is_started_again_and_the_runner_renewed(
    watched: Watched,
) -> None:
    """One line when it falls, one when it is back; nothing fires meanwhile."""
    watched.up()
    assert watched.it.trouble == ""
    end(watched.it.server)
    watched.state = None
    watched.tick()
    assert watched.it.trouble == "Prefect's server does not answer"
    assert watched.said == [
        "Prefect's server was ended by SIGKILL; it is started again in 1 s"
    ]
    watched.tick()
    watched.state = READY
    watched.tick()
    assert watched.said[1:] == ["Prefect's server answers again; schedules go on"]
    assert watched.orders[-1] == {"renew": True}
    renewed(watched.it.runner)
    watched.tick()
    watched.tick()
    assert watched.it.runner.starts == 2
    order = watched.orders[-1]
    assert order["schedules"] == {"tiny": HOURLY}
    assert order["since"].keys() == {"tiny"}
    assert not order["forgiven"]
    watched.up()
    assert watched.it.trouble == ""
    assert len(watched.said) == 2


def test_a_dead_runner_is_started_again(watched: Watched) -> None:
    """The line names its log."""
    watched.up()
    end(watched.it.runner)
    watched.tick()
    (line,) = watched.said
    assert line.startswith("the runner of schedules was ended by SIGKILL")
    assert "runner.log" in line
    watched.tick()
    assert watched.it.runner.starts == 2
    assert watched.it.trouble == "the runner of schedules is not up"


@pytest.mark.parametrize("who", ["server", "runner"])
def test_a_child_that_hangs_is_ended(watched: Watched, who: str) -> None:
    """It lives and says nothing: after a minute and a half it is started again."""
    watched.up()
    child = getattr(watched.it, who)
    if who == "server":
        watched.state = None
        watched.tick()
        assert watched.said == []  # it may just be busy
        watched.it._answered -= supervisor.SILENT + 1
    else:
        watched.it._reported -= supervisor.SILENT + 1
    watched.tick()
    assert child.process is None
    assert "for 90 s; it is started again in 1 s" in watched.said[-1]


def test_systemd_hears_of_schedules_once(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """READY when they are all registered, the watchdog all the time."""
    said: list[str] = []
    monkeypatch.setattr(supervisor.systemd, "notify", said.append)
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    watched.tick()
    assert said.count("READY=1") == 0
    assert said.count("WATCHDOG=1") == 1
    watched.up()
    watched.up()
    assert said.count("READY=1") == 1


def test_a_database_that_is_away_is_waited_for(watched: Watched) -> None:
    """No restart helps; when it is back, what was missed since is looked for."""
    watched.up()
    good = watched.it._good
    watched.state = DATABASE
    for _ in range(3):
        watched.tick()
    assert watched.said == [
        "Prefect's database does not answer; schedules wait until it does"
    ]
    assert watched.it.server is not None
    assert watched.it.server.starts == 1
    watched.state = READY
    watched.tick()
    assert watched.said[-1] == "Prefect's server answers again; schedules go on"
    renewed(watched.it.runner)
    watched.tick()
    watched.tick()
    assert good is not None
    assert watched.orders[-1]["since"] == {"tiny": good.isoformat()}


@pytest.mark.parametrize("jump", [-3 * 3600.0, 365 * 86_400.0])
def test_a_clock_that_is_set_renews_the_runner(watched: Watched, jump: float) -> None:
    """Back, nothing would fire for hours; forth, a year's firings all at once."""
    watched.up()
    watched.tick(jump)
    assert watched.orders[-1] == {"renew": True}
    assert watched.said == [
        f"the clock has moved by {jump:+.0f} s; schedules are taken up anew"
    ]
    watched.tick()
    assert len(watched.said) == 1


def test_an_edit_is_read_and_a_faulty_one_is_said(watched: Watched) -> None:
    """The old schedules stay until the file is sound again."""
    project = watched.it.project
    sound = project.pipelines_file.read_text()
    for bad in ("pipelines: [", sound.replace("3600", "-1"), sound + "odd: 1\n"):
        project.pipelines_file.write_text(bad)
        watched.tick()
        watched.tick()
        assert watched.said[-1].endswith("the schedules stay as they were")
        assert watched.said[-1].startswith("pipelines.yaml")
        assert watched.it.schedules == {"tiny": HOURLY}
    values = yaml.safe_load(sound)
    values["pipelines"]["other"] = plain.TINY | {"schedule": {"cron": "0 6 * * *"}}
    project.pipelines_file.write_text(yaml.safe_dump(values, sort_keys=False))
    watched.tick()
    watched.tick()
    assert watched.said[-1].endswith("scheduled now: tiny, other")
    assert watched.orders[-1] == {"renew": True}
    assert len(watched.said) == 4
    renewed(watched.it.runner)
    watched.tick()
    watched.tick()
    assert watched.orders[-1]["forgiven"]
    assert watched.orders[-1]["schedules"].keys() == {"tiny", "other"}


def test_what_another_serve_left_says_since_when(watched: Watched) -> None:
    """The next start looks for what was missed, of schedules that stayed the same."""
    watched.up()
    watched.it._beaten = 0.0
    watched.tick()
    left = heartbeat.last(watched.it.project)
    assert left is not None
    assert left.schedules == {"tiny": HOURLY}
    assert left.next["tiny"]
    watched.it._good = None
    watched.it._good_schedules = {}
    watched.it._begin()
    assert watched.it._good is not None
    assert watched.it._good.isoformat() == left.good
    assert watched.it._good_schedules == left.schedules


def test_a_missed_firing_is_told_with_its_pipeline(watched: Watched) -> None:
    """By the runner, which knows what ran."""
    missed = {"pipeline": "tiny", "count": 2, "made_up": True}
    lines.send(watched.it.pipe.path, {"missed": missed})
    lines.send(watched.it.pipe.path, {"passed": {"pipeline": "tiny", "count": 1}})
    watched.tick()
    assert watched.missed == [
        ("tiny", {"count": 2, "made_up": True}),
        ("tiny", {"count": 1}),
    ]


def test_a_project_without_schedules_left_waits(
    watched: Watched, project: Project
) -> None:
    """Serve goes on, in case one comes back."""
    assert project.root.exists()
    watched.it.schedules = {}
    end(watched.it.runner)
    watched.tick()
    watched.tick()
    assert watched.it.runner.process is None
    assert watched.it.trouble == "no pipeline has a schedule"
