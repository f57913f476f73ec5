"""``kill -9`` at random moments: nothing torn, nothing left behind, nothing lost."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import Artifact
from tests import plain
from tests.processes import processes_of, until

ROUNDS = 20
MIDDLE = plain.TINY | {
    "source": {"name": "simulated", "points": 50},
    "clients": {"train": 200, "vote": 400, "test": 200},
    "train": {"count": 20, "size": 30},
    "replicates": 40,
}
pytestmark = pytest.mark.faults


class Watch(threading.Thread):
    """Looks at the store all the time for anything unsound under a final name."""

    def __init__(self, project: Project) -> None:
        super().__init__(daemon=True)
        self.project = project
        self.stopped = threading.Event()
        self.torn: list[str] = []
        self.seen: set[Path] = set()

    def run(self) -> None:
        """Check each artifact as soon as it appears."""
        while not self.stopped.is_set():
            found = {f for root in self.project.stores for f in root.glob("*/[!.]*")}
            for path in found - self.seen:
                problem = Artifact(path).problem(content=True)
                self.seen.add(path)
                if problem:
                    self.torn.append(f"{path}: {problem}")
            time.sleep(0.002)


def start(project: Project) -> subprocess.Popen[bytes]:
    """Start the command that is killed, and later repeated."""
    words = ["run", "tiny", "--workers", "2", "--block", "2"]
    return subprocess.Popen(
        [sys.executable, "-m", "curvote.cli", *words, "--project", str(project.root)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def complete(project: Project) -> dict[str, str]:
    """Run the command to its end; return the SHA-256 of every table."""
    assert start(project).wait(timeout=300) == 0
    return plain.hashes(project, records.completed_run(project, "tiny"))


@pytest.fixture(scope="module")
def uninterrupted(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[dict[str, str], float]:
    """Return the tables of a run that nobody killed, and how long it took."""
    project = plain.write(tmp_path_factory.mktemp("whole"), tiny=MIDDLE)
    started = time.monotonic()
    tables = complete(project)
    return tables, time.monotonic() - started


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_killed_run_is_finished_by_the_same_command(
    uninterrupted: tuple[dict[str, str], float], tmp_path: Path, seed: int
) -> None:
    """The same tables bit for bit; no torn artifact; no process 10 s later."""
    tables, seconds = uninterrupted
    project = plain.write(tmp_path, tiny=MIDDLE)
    watch = Watch(project)
    watch.start()
    victim = start(project)
    moment = random.Random(seed).uniform(0.05, 1) * seconds
    time.sleep(moment)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    assert until(lambda: not processes_of(project.root), 10), "a process was left"
    assert complete(project) == tables
    watch.stopped.set()
    watch.join()
    assert not watch.torn
    print(f"killed after {moment:.1f} of {seconds:.1f} s")
