"""A server here and clients in another process, with nothing but envelopes between."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from curvote.cli.commands.rehearsal import run_once
from curvote.intake.box import Intake
from curvote.messages.message import parse_message
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.release.publication import close_round
from curvote.pipeline.run.planner import Plan, make_plan
from curvote.pipeline.store.records import RunRecord
from tests import clients_process
from tests.processes import start_fork

NAME = "far"
FAR = {
    "mode": "production",
    "source": {"name": "remote", "points": 20, "negative": "-1", "positive": "+1"},
    "clients": {"train": 60, "vote": 80},
    "project": {"basis": "bspline", "size": 4, "judge": "coefficients"},
    "train": {"count": 5, "size": 20},
    "aggregate": {"cutoff": 0.7},
    "epsilon": 4,
    "learners": ["centroid"],
    "intake": {},
}


@dataclass(frozen=True)
class Server:
    """The server's side: a project whose clients are elsewhere."""

    project: Project

    def plan(self) -> Plan:
        """Return the plan of a run, which closes a complete round."""
        configured = PipelinesFile(self.project).configure_pipeline(NAME)
        return make_plan(self.project, configured, fetch=True)

    def run(self) -> tuple[Plan, RunRecord]:
        """Do what `curvote run` does: all that is not blocked, then publish."""
        configured = PipelinesFile(self.project).configure_pipeline(NAME)
        return run_once(self.project, configured)[:2]

    def close(self) -> None:
        """Go on with what is in."""
        configured = PipelinesFile(self.project).configure_pipeline(NAME)
        close_round(self.project, configured)

    def published(self, asks: str) -> tuple[Path, Path]:
        """Return the task and the invitations of a round."""
        stem = self.project.published(NAME) / f"{asks}-1"
        return Path(f"{stem}.task.json"), Path(f"{stem}.invitations.jsonl")

    def take(self, envelopes: list[bytes]) -> None:
        """Take envelopes in; a refused one raises."""
        with Intake(self.project.intake) as intake:
            for data in envelopes:
                intake.take(data, parse_message)


def answers(
    server: Server,
    asks: str,
    curves: np.ndarray,
    labels: np.ndarray,
    folder: Path,
    *,
    apart: bool = False,
) -> list[bytes]:
    """Return the envelopes of clients who run in a process of their own.

    ``apart``: it shares no import with this one; else it is a fork.
    """
    folder.mkdir()
    (folder / "ledgers").mkdir()
    np.savez(folder / "clients.npz", curves=curves, labels=labels)
    places = [*server.published(asks), folder / "clients.npz", folder / "outbox"]
    words = [*map(str, places)]
    if apart:
        command = [sys.executable, "-m", "tests.clients_process", *words]
        root = Path(__file__).parents[1]
        subprocess.run(command, check=True, cwd=root, timeout=600)
    else:
        assert start_fork(lambda: clients_process.main(*words)).wait(600) == 0
    files = sorted((folder / "outbox").glob("*.json"))
    return [file.read_bytes() for file in files]
