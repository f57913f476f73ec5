"""Clients in a process of their own: each has a curve, a label, and its own ledger.

``python -m tests.clients_process TASK INVITATIONS CLIENTS OUT`` answers one invitation
for each client of the npz file CLIENTS and leaves the envelopes in OUT.
"""

import json
import sys
from pathlib import Path

import numpy as np

from curvote.base.entropy import SystemEntropy
from curvote.client.table import OwnerRecord
from curvote.ledger import places, session
from curvote.ledger.account import POPULATION
from curvote.ledger.register import open_books
from curvote.messages.answer import answer_task as noised
from curvote.messages.answer import validate_task
from curvote.wire.envelope import Invitation
from curvote.wire.signing import open_signed
from curvote.wire.task import Task


def main(task_file: str, invitation_file: str, clients_file: str, out: str) -> None:
    """Let every client answer once."""
    signed = open_signed(Path(task_file).read_bytes()).document
    task = validate_task(signed["task"])
    lines = Path(invitation_file).read_text().splitlines()
    clients = np.load(clients_file)
    for i, line in enumerate(lines[: len(clients["labels"])]):
        invitation = Invitation.from_json(json.loads(line))
        mine = clients["curves"][i], int(clients["labels"][i])
        answer(task, signed["seal_to"], invitation, *mine, out, i)


def answer(
    task: Task,
    seal_to: str | None,
    invitation: Invitation,
    curve: np.ndarray,
    label: int,
    out: str,
    number: int,
) -> None:
    """Release the message of one client, from nothing but what that client has."""
    given, about = OwnerRecord(curve, label), invitation.about
    ledger = Path(out).parent / "ledgers" / f"{task.asks}-{number}.sqlite"
    with open_books(ledger, places.register_path()) as own:
        own[0].set_cap(POPULATION, task.budget)
        session.release_message(
            lambda: noised(task, given, about, SystemEntropy()),
            task=task,
            invitation=invitation,
            sender="me",
            number=1,
            books=own,
            outbox=Path(out),
            seal_to=seal_to,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
    known = {name for name in sys.modules if name.startswith("curvote.")}
    assert not any("server" in name or "run." in name for name in known)
