"""Hospitals that share nothing, each a folder of its own, and the steward they answer.

What goes between them is a task, an invitation each, and envelopes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner, Result

from curvote.base.errors import UserError
from curvote.chain import lookup
from curvote.cli.commands import (
    client as cli_client,
)
from curvote.cli.commands import (
    intake as cli_intake,
)
from curvote.cli.commands import (
    ledger as cli_ledger,
)
from curvote.ledger.book import Ledger
from curvote.pipeline.release.publication import server_key
from curvote.wire.envelope import Invitation
from curvote.wire.signing import open_signed
from tests import plain
from tests.exchange import NAME, Server

NAMES = ("cleveland", "hungarian", "switzerland", "va")
FEATURES = {"age": [20, 90], "chol": [100, 400]}
REMOTE: dict[str, Any] = {
    "mode": "production",
    "protocol": "transfer",
    "source": {
        "name": "remote_table",
        "servers": list(NAMES),
        "features": FEATURES,
        "classes": ["no", "yes"],
        "record": "patient",
    },
    "transfer": {"target": "hungarian", "release": "moments"},
    "epsilon": 2,
    "intake": {},
}
# What a hospital states of its table without it.
FORM = """
id: patient
label: disease
classes: [no, yes]
columns:
  age: {unit: years, bounds: [20, 90]}
  chol: {unit: mg/dl, bounds: [100, 400]}
"""
N = 60


def steward(
    root: Path, *, source: Any = None, intake: Any = None, **transfer: Any
) -> Server:
    """Return a steward whose pipeline says ``transfer`` beside what all of them say."""
    own = REMOTE | {"transfer": REMOTE["transfer"] | transfer}
    own |= {"source": source or REMOTE["source"], "intake": intake or {}}
    return Server(plain.write(root, **{NAME: own}))


def table(name: str, n: int = N, seed: int = 0) -> pd.DataFrame:
    """Return patients: who is ill is older and has more cholesterol."""
    rng = np.random.default_rng([seed, *name.encode()])
    ill = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "chol": rng.normal(200 + 60 * ill, 20).clip(100, 400).round(1),
            "disease": np.where(ill, "yes", "no"),
            "patient": [f"{name}-{i}" for i in range(n)],
            "age": rng.normal(45 + 15 * ill, 5).clip(20, 90).round(1),
        }
    )


@dataclass(frozen=True)
class Hospital:
    """A folder with a table, a ledger, an outbox, and what it was sent."""

    root: Path
    name: str

    @classmethod
    def at(cls, root: Path, name: str) -> Hospital:
        """Make the folder of a hospital that has received nothing yet."""
        home = cls(root / f"at-{name}", name)
        home.root.mkdir()
        table(name).to_csv(home.root / "patients.csv", index=False)
        return home

    @property
    def ledger(self) -> Path:
        """The hospital's ledger."""
        return self.root / "ledger.sqlite"

    def receive(self, server: Server) -> Invitation:
        """Take the published task, and the one line that is for this hospital."""
        task, secret = server.published("release")
        (self.root / "task.json").write_bytes(task.read_bytes())
        lines = map(json.loads, secret.read_text().splitlines())
        (mine,) = (line for line in lines if line["server"] == self.name)
        (self.root / "invitation.json").write_text(json.dumps(mine))
        return Invitation.from_json(mine)

    def client(self, *words: str) -> Result:
        """Run `curvote client` as this hospital's user."""
        env = {"XDG_STATE_HOME": str(self.root / "state")}
        return CliRunner().invoke(cli_client.app, words, env=env)

    def init(self, *words: str, ledger: Path | None = None) -> None:
        """Set the caps and the form of the table, once."""
        form = self.root / "form.yaml"
        form.write_text(FORM)
        own = ["--ledger", str(ledger or self.ledger), "--form", str(form)]
        done = self.client("init", *own, *words)
        assert done.exit_code == 0, (done.output, done.exception)

    def release(self, *more: str, **changes: Any) -> Result:
        """Run `curvote client release`."""
        given = {name: self.root / f"{name}.json" for name in ("task", "invitation")}
        given |= {"table": self.root / "patients.csv", "ledger": self.ledger}
        given |= {"label": "disease", "id": "patient", "outbox": self.root / "outbox"}
        given |= changes
        names = {"label": "label-column", "id": "id-column"}
        words = [
            w
            for k, v in given.items()
            if v is not None
            for w in (f"--{names.get(k, k)}", v)
        ]
        return self.client("release", *map(str, words), "--yes", *more)

    def released(self, *more: str, **changes: Any) -> dict[str, Any]:
        """Release, and return what the command says as JSON."""
        done = self.release("--json", *more, **changes)
        assert done.exit_code == 0, done.exception
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    def refusal(self, *more: str, **changes: Any) -> str:
        """Return why nothing was released; nothing was reserved, nothing lies about."""
        before = self.state()
        done = self.release(*more, **changes)
        assert isinstance(done.exception, UserError), (done.output, done.exception)
        assert self.state() == before
        return str(done.exception)

    def state(self) -> tuple[Any, ...]:
        """Return all that a release changes: the ledger's counts, and the outbox."""
        spent: Any = None
        if self.ledger.exists():
            with Ledger(self.ledger) as ledger:
                spent = ledger.count_releases(), [e.state for e in ledger.entries()]
        files = {p: p.read_bytes() for p in (self.root / "outbox").glob("*.json")}
        return spent, files

    def send(self, server: Server) -> bytes:
        """Put the one envelope into the steward's inbox and return it."""
        (envelope,) = (self.root / "outbox").glob("*.json")
        inbox = server.project.inbox(NAME)
        inbox.mkdir(parents=True, exist_ok=True)
        data = envelope.read_bytes()
        (inbox / envelope.name).write_bytes(data)
        return data

    def asked(self, server: Server, file: str = "other.json", **changes: Any) -> Path:
        """Sign a task that differs from the published one, as the steward could."""
        document = open_signed((self.root / "task.json").read_bytes()).document
        task = lookup.read_task(document["task"] | changes).to_json()
        path = self.root / file
        path.write_bytes(server_key(server.project).sign(document | {"task": task}))
        return path

    def show(self) -> list[dict[str, Any]]:
        """Return what `curvote ledger show` lists."""
        words = ["show", "--json", "--ledger", str(self.ledger)]
        rows: list[dict[str, Any]] = json.loads(
            CliRunner().invoke(cli_ledger.app, words).stdout
        )
        return rows


def take(server: Server) -> dict[str, Any]:
    """Run `curvote intake take` and return what it counts."""
    words = ["take", NAME, "--json", "--project", str(server.project.root)]
    done = CliRunner().invoke(cli_intake.app, words)
    assert done.exit_code == 0, done.exception
    told: dict[str, Any] = json.loads(done.stdout)
    return told
