"""A supervisor of two processes that sleep, which a test ends as it likes."""

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from curvote.base.durable import private_folder
from curvote.flows import lines
from curvote.flows.server.launch import READY, Child, ServerLaunch
from curvote.flows.serving import service as supervisor
from curvote.flows.serving.service import Announcer, Supervisor
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
        self.it._last_poll = 0.0
        self.it.tick()

    def up(self) -> None:
        """Let the runner say that it is at work."""
        lines.send_message(self.it.pipe.path, {"registered": ["tiny"]})
        lines.send_message(self.it.pipe.path, {"polled": time.monotonic()})
        self.tick()


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Yield a supervisor whose server answers; what is given to the runner is kept."""
    project = plain.write(tmp_path, tiny=plain.TINY | {"schedule": {"interval": 3600}})
    said: list[str] = []
    missed: list[tuple[str, dict[str, Any]]] = []
    told = Announcer(
        line=lambda line: said.append(line["message"]),
        missed=lambda name, fact: missed.append((name, fact)),
    )
    private_folder(project.state)
    it = Supervisor(
        project=project,
        url="http://127.0.0.1:9/api",
        schedules={"tiny": HOURLY},
        flow="module:flow",
        launch=ServerLaunch(project.state / "prefect", "secret"),
        server=Child("Prefect's server", sleeper),
        runner=Child("the runner of schedules", sleeper),
        pipe=lines.LinePipe(project.state / "serve.pipe"),
        announcer=told,
        clock=lambda: made.clock,
    )
    made = Watched(it, said, missed)
    monkeypatch.setattr(supervisor.systemd, "api_status", lambda _url: made.state)
    tell = it.runner.send_message
    monkeypatch.setattr(
        it.runner,
        "send_message",
        lambda order: (made.orders.append(order), tell(order)),
    )
    assert it.server is not None
    it.server.start()
    it._resume()
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
