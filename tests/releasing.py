"""A client who releases noise that nobody can repeat, and who may be killed."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from curvote.base.entropy import SystemEntropy
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.ledger.account import POPULATION
from curvote.ledger.amounts import Entry
from curvote.ledger.book import Ledger
from curvote.ledger.register import open_books
from curvote.ledger.session import release_id, release_message
from curvote.wire.envelope import Invitation, issue_invitations
from curvote.wire.task import Task
from tests.rounds import REPORTS

ONE = Budget(1.0)


class Killed(Exception):  # noqa: N818 - what happens to the process
    """Stands for the end of the process: nobody tidies up."""


class Client:
    """A client with a ledger, a register, an outbox and fresh noise."""

    def __init__(self, root: Path) -> None:
        self.outbox, self.path = root / "outbox", root / "ledger.sqlite"
        self.register = root / "register.sqlite"
        self.draws = 0
        with open_books(self.path, self.register) as (ledger, _):  # before a test looks
            ledger.set_cap(POPULATION, ONE)

    def raise_cap(self, epsilon: float) -> None:
        """Give the client room for more."""
        with Ledger(self.path) as ledger:
            ledger.raise_cap(POPULATION, Budget(epsilon))

    def draw(self) -> dict[str, Any]:
        """Return noise that nobody can repeat."""
        self.draws += 1
        return {"z": (SystemEntropy().words(4) >> 11).tolist(), "label": 1}

    def release(
        self, invitation: Invitation | None = None, **changes: Any
    ) -> tuple[Path, bytes]:
        """Release with a new invitation, unless one is given."""
        task = changes.get("task", REPORTS)
        given: dict[str, Any] = {
            "draw": self.draw,
            "task": task,
            "invitation": invitation or issue_invitations(task, 1)[0],
            "sender": "me",
            "number": 1,
            "outbox": self.outbox,
        }
        with open_books(self.path, self.register) as opened:
            path = release_message(books=opened, **(given | changes))
        return path, path.read_bytes()

    def entry(self, number: int = 1, task: Task = REPORTS) -> Entry | None:
        """Return what the ledger says of a release."""
        with Ledger(self.path) as ledger:
            return ledger.entry(release_id(task, "me", number))

    def state(self, number: int = 1) -> str | None:
        """Return the state of a release."""
        entry = self.entry(number)
        return entry and entry.state

    def files(self) -> set[str]:
        """Return what kinds of files the outbox holds."""
        found = {p.name for p in self.outbox.iterdir()} - {".lock"}
        return {name[:4] if name.startswith(".") else "envelope" for name in found}


def refuse() -> dict[str, Any]:
    """Stand for a mechanism that refuses."""
    raise UserError("NaN")


def killing(function: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
    """Return a function that ends the process before, or after, it did its work."""

    def wrapped(*given: Any, **named: Any) -> Any:
        if after:
            function(*given, **named)
        raise Killed

    return wrapped


def undisturbed(root: Path) -> float:
    """Return how many seconds a release takes in a process of its own."""
    root.mkdir()
    client = Client(root)
    child, started = _start(client), time.monotonic()
    os.waitpid(child, 0)
    assert client.state() == "confirmed"
    return time.monotonic() - started


def kill_round(root: Path, seed: int, slowest: float) -> str:
    """Kill a release at a random moment, repeat it; return how far it had come."""
    root.mkdir()
    client = Client(root)
    child = _start(client)
    # Over three decades: whatever a busy machine makes of ``slowest``, some are early.
    time.sleep(slowest * 10 ** random.Random(seed).uniform(-3, 0))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    state = client.state()
    before = {p: p.read_bytes() for p in client.outbox.glob("*.json")}
    assert state is None or state in {"reserved", "confirmed"}
    assert not before or state is not None, "published, and the ledger knows nothing"
    path, data = client.release()
    assert client.state() == "confirmed"
    assert list(client.outbox.glob("*.json")) == [path]
    assert before in ({}, {path: data})
    assert client.release() == (path, data)
    return f"{state} {len(before)}"


def _start(client: Client) -> int:
    """Release in a child and return its number as soon as it is about to begin."""
    ready, go = os.pipe()
    child = os.fork()  # no connection is open across it
    if not child:
        try:
            os.write(go, b"!")
            client.release()
        finally:
            os._exit(0)
    os.read(ready, 1)  # a busy machine takes its time to fork
    os.close(ready)
    os.close(go)
    return child
