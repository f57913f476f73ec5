"""A server whose round of votes stays open, and honest clients in this process."""

import json
import shutil
from pathlib import Path

import numpy as np

from curvote.base.entropy import SeededEntropy
from curvote.chain.axis import Cell
from curvote.data.simulation import simulated
from curvote.messages.message import client_data, message_of, payload_at
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import find_artifact
from curvote.pipeline.store.artifacts import Artifact
from curvote.pipeline.store.records import RunRecord
from curvote.wire import signing
from curvote.wire.envelope import Invitation, seal_message
from curvote.wire.task import Task
from tests import plain
from tests.exchange import FAR, NAME, Server

CELL = Cell.from_mapping({"protocol": "mrma", "epsilon": 4.0, "learner": "centroid"})
VOTERS, FIRST, FOLD = 120, 30, 20
ONLINE = FAR | {
    "clients": {"train": 60, "vote": VOTERS},
    "intake": {"min_votes": FIRST, "online": True, "fold": FOLD},
}


def opened(root: Path) -> Server:
    """Return a server whose reports are in and whose round of votes is open."""
    server = Server(plain.write(root, **{NAME: ONLINE}))
    server.run()
    server.take(answers(server, "report", seed=1))
    server.run()
    return server


def copied(server: Server, root: Path) -> Server:
    """Return a copy of a server, to be changed at will."""
    shutil.copytree(server.project.root, root, dirs_exist_ok=True)
    return Server(Project(root))


def asked(server: Server, asks: str) -> tuple[Task, list[Invitation]]:
    """Return the published task and the invitations to it."""
    task, invitations = server.published(asks)
    lines = invitations.read_text().splitlines()
    invited = [Invitation.from_json(json.loads(line)) for line in lines]
    return Task.from_json(
        signing.open_signed(task.read_bytes()).document["task"]
    ), invited


def answers(server: Server, asks: str, seed: int) -> list[bytes]:
    """Return the envelopes of honest clients, one for each invitation."""
    task, invited = asked(server, asks)
    rng, given = np.random.default_rng(seed), simulated.CURVES.Parameters(points=20)
    drawn = simulated.CURVES.clients(given, len(invited), rng)
    votes = task.candidates is not None
    judge = np.array([each.about for each in invited]) if votes else None
    known = client_data(task, drawn["curve"], drawn["label"], judge)
    sent = message_of(task).draw(task, known, SeededEntropy(seed))
    return [seal_message(each, payload_at(sent, i)) for i, each in enumerate(invited)]


def verdicts(server: Server, *, right: bool) -> list[bytes]:
    """Return the envelopes of voters who all say the same."""
    _, invited = asked(server, "vote")
    return [seal_message(i, {"learner": i.about, "positive": right}) for i in invited]


def made(server: Server, record: RunRecord, stage: str) -> Artifact:
    """Return what a stage of a run made."""
    return find_artifact(server.project, record, stage, CELL)


def ensemble(server: Server, record: RunRecord) -> dict[str, np.ndarray]:
    """Return the utilities and weights of a run."""
    return made(server, record, "aggregate").columns("ensemble", (0,))


def votes(server: Server, record: RunRecord) -> dict[str, np.ndarray]:
    """Return the counts of a run."""
    return made(server, record, "evaluate").columns("votes", (0,))
