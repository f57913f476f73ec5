"""Whatever dies under `curvote serve`, its schedules go on firing."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from curvote.flows.environment import read_secret
from curvote.flows.server.private import read_serving
from curvote.flows.serving import health
from curvote.flows.serving.health import check_health
from curvote.pipeline.config.project import Project
from tests import plain, served
from tests.processes import processes_of, until

pytestmark = pytest.mark.faults

SOON = 180.0
OFTEN = {"interval": 3, "catch_up": "latest"}
DAILY = {"cron": "0 6 * * *"}


def write(root: Path, **schedules: object) -> None:
    """Write a project with a pipeline for each schedule."""
    plain.write(root, **{n: plain.TINY | {"schedule": s} for n, s in schedules.items()})


@dataclass
class Serving:
    """A `serve` of a project that fires every three seconds."""

    root: Path
    process: subprocess.Popen[str]

    @property
    def log(self) -> str:
        return (self.root / "serve.log").read_text()

    def fired(self) -> list[str]:
        """Return a line for each run: its pipeline and its process."""
        place = self.root / "fired"
        return place.read_text().splitlines() if place.exists() else []

    def next_one(self) -> bool:
        """Wait for a run that begins from now on."""
        known = len(self.fired())
        return until(lambda: len(self.fired()) > known, SOON)

    def child(self, module: str) -> int:
        """Return the process of a child, once there is one."""
        found: list[int] = []

        def look() -> bool:
            lines = {pid: _line(pid) for pid in processes_of(self.root)}
            found[:] = [pid for pid, line in lines.items() if f"flows.{module}" in line]
            return len(found) == 1

        assert until(look, SOON), self.log
        return found[0]

    def kill(self, module: str, number: int = signal.SIGKILL) -> None:
        os.kill(self.child(module), number)


def _line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.fixture(scope="module")
def start(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Serving]]:
    """Yield what serves a file, and ends all at the end."""
    begun: list[Serving] = []

    def start(**schedules: object) -> Serving:
        root = tmp_path_factory.mktemp("stays")
        write(root, **schedules)
        begun.append(Serving(root, served.start(root)))
        return begun[-1]

    yield start
    for each in begun:
        each.process.kill()
        each.process.wait()
        for pid in processes_of(each.root):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def serving(start: Callable[..., Serving]) -> Serving:
    """Return one that has fired."""
    made = start(often=OFTEN)
    assert made.next_one(), made.log
    return made


def well(serving: Serving) -> bool:
    """Say whether `curvote health` has nothing to say of serve and schedules."""
    rows = check_health(Project(serving.root))
    return [row["status"] for row in rows[:2]] == ["ok", "ok"]


@pytest.mark.parametrize("round_", range(3))
def test_it_fires_again_when_its_server_is_killed(
    serving: Serving, round_: int
) -> None:
    """Again and again, on the same port, secret and database, without a traceback."""
    number = signal.SIGTERM if round_ == 2 else signal.SIGKILL
    state = serving.root / "data" / "state"
    entry, secret = read_serving(state / "prefect"), read_secret(state / "serve.secret")
    before = serving.child("server.process")
    serving.kill("server.process", number)
    assert until(lambda: serving.child("server.process") != before, SOON)
    assert serving.next_one(), serving.log
    assert until(lambda: well(serving), SOON)
    assert read_serving(state / "prefect") == entry
    assert read_secret(state / "serve.secret") == secret
    assert "Prefect's server answers again" in serving.log
    assert "Traceback" not in serving.log


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_fires_again_when_its_runner_is_killed(
    serving: Serving, number: int
) -> None:
    """A line says so, and where to read more."""
    serving.kill("serving.runner", number)
    assert serving.next_one(), serving.log
    assert until(lambda: well(serving), SOON)
    assert "the runner of schedules" in serving.log
    assert "Traceback" not in serving.log


def test_a_database_that_has_gone_is_made_anew(serving: Serving) -> None:
    """Deployments are registered again on whatever server there is."""
    home = serving.root / "data" / "state" / "prefect"
    for file in home.glob("prefect.db*"):
        file.unlink()
    serving.kill("server.process")
    assert serving.next_one(), serving.log
    assert (home / "prefect.db").exists()
    assert "Traceback" not in serving.log


def test_an_edit_takes_effect(serving: Serving) -> None:
    """A faulty one does not; a pipeline that is added fires, one taken out does not."""
    write(serving.root, often=OFTEN | {"interval": -3})
    said = "its schedule stays as it was"
    assert until(lambda: said in serving.log, SOON)
    assert serving.next_one()
    write(serving.root, often=OFTEN, other=OFTEN)
    assert until(lambda: any("other" in run for run in serving.fired()), SOON)
    write(serving.root, often=OFTEN)
    assert until(lambda: "scheduled now: often\n" in serving.log, SOON)


def test_a_scheduled_flow_that_is_killed_holds_up_nothing(
    start: Callable[..., Serving],
) -> None:
    """The next firing runs; firings that came due meanwhile are passed over."""
    serving = start(long=OFTEN)
    for _ in range(2):
        assert serving.next_one(), serving.log
        os.kill(int(serving.fired()[-1].split()[1]), signal.SIGKILL)
    assert serving.next_one(), serving.log
    serving.process.send_signal(signal.SIGTERM)
    assert serving.process.wait(10) == 0
    assert until(lambda: not processes_of(serving.root), 1.0)
    assert "Traceback" not in serving.log


def test_what_was_missed_is_made_up_once(start: Callable[..., Serving]) -> None:
    """Where the schedule asks for it; else it is said to be missed."""
    serving = start(often=DAILY | {"catch_up": "latest"}, long=DAILY)
    project = Project(serving.root)

    def beats() -> bool:
        left = health.last_heartbeat(project)
        return left is not None and left.good is not None and bool(left.schedules)

    assert until(beats, SOON), serving.log
    serving.process.kill()
    serving.process.wait()
    assert until(lambda: not processes_of(serving.root), 10.0)
    path = project.state / "serve.json"
    left = json.loads(path.read_text())
    path.write_text(json.dumps(left | {"good": "2026-01-01T00:00:00+00:00"}))
    again = served.start(serving.root)
    try:
        assert until(lambda: bool(serving.fired()), SOON), serving.log
        said = "none makes up for it\n"
        assert until(lambda: said in serving.log, SOON), serving.log
        assert [run.split()[0] for run in serving.fired()] == ["often"]
        assert "often: missed" in serving.log
        assert "one run makes up for it now" in serving.log
        assert "long: missed" in serving.log
    finally:
        again.terminate()
        again.wait(10)
