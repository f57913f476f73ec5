"""A server with a public table, people who know their label, and a registry."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner, Result

from curvote.base.errors import UserError
from curvote.cli.commands import client as cli_client
from curvote.ledger.amounts import Entry
from curvote.ledger.book import Ledger
from curvote.wire.envelope import Invitation
from tests import plain
from tests.exchange import NAME, Server

N = 44
ALONE = 4  # so many of them keep their label themselves
CLASSES = ("low", "mid", "high")
TOWNS = ("north", "south")
FORM = "{id: record, label: label, classes: [low, mid, high]}"
SOURCE: dict[str, Any] = {
    "name": "remote_labels",
    "path": "people.csv",
    "record": "person",
    "features": ["age", "town", "chol"],
    "categories": {"town": list(TOWNS)},
    "classes": list(CLASSES),
}
PIPELINE: dict[str, Any] = {
    "mode": "production",
    "protocol": "labels",
    "source": SOURCE,
    "epsilon": 2,
    "learners": ["knn"],
    "intake": {},
}


def people(n: int, seed: int = 0) -> pd.DataFrame:
    """Return n people: their label follows from what everybody knows of them."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, len(CLASSES), n)
    return pd.DataFrame(
        {
            "chol": rng.normal(150 + 60 * place, 10).round(1),
            "person": [f"p-{i}" for i in range(n)],
            "town": np.array(TOWNS)[place // 2],
            "age": rng.normal(30 + 20 * place, 3).round(),
            "label": np.array(CLASSES)[place],
        }
    )


def server(root: Path, table: pd.DataFrame, **changes: Any) -> Server:
    """Return a server whose project has the public columns of a table, no label."""
    root.mkdir(parents=True, exist_ok=True)
    table.drop(columns="label").to_csv(root / "people.csv", index=False)
    return Server(plain.write(root, **{NAME: PIPELINE | changes}))


def invitations(given: Server) -> dict[str, Invitation]:
    """Return what was published for each record."""
    _, secret = given.published("code")
    lines = map(json.loads, secret.read_text().splitlines())
    return {line["record"]: Invitation.from_json(line) for line in lines}


@dataclass(frozen=True)
class Keeper:
    """Whoever keeps labels: a folder with a ledger and an outbox."""

    root: Path

    @classmethod
    def at(cls, root: Path, given: Server) -> Keeper:
        """Make the folder, with the published task in it."""
        root.mkdir(parents=True)
        task, _ = given.published("code")
        (root / "task.json").write_bytes(task.read_bytes())
        return cls(root)

    @property
    def ledger(self) -> Path:
        """The ledger."""
        return self.root / "ledger.sqlite"

    @property
    def outbox(self) -> Path:
        """Where envelopes are put."""
        return self.root / "outbox"

    def invited(self, invitation: Invitation, file: str = "invitation.json") -> None:
        """Receive an invitation."""
        path = self.root / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(invitation.to_json()))

    def label(self, *words: str, **changes: Any) -> Result:
        """Run `curvote client label` for a record of one's own."""
        given = {"invitation": self.root / "invitation.json"} | changes
        return self._run(given, words)

    def table(self, labels: pd.DataFrame, *words: str, **changes: Any) -> Result:
        """Run it with a table of labels, and the invitations of a folder."""
        labels.to_csv(self.root / "labels.csv", index=False)
        self.state(FORM)
        given = {"table": self.root / "labels.csv"}
        given |= {"invitations": self.root / "invitations"} | changes
        return self._run(given, words)

    def state(self, text: str) -> None:
        """Settle the form of the table."""
        (self.root / "form.yaml").write_text(text)
        env = {"XDG_STATE_HOME": str(self.root / "state")}
        argv = ["form", str(self.root / "form.yaml"), "--ledger", str(self.ledger)]
        done = CliRunner().invoke(cli_client.app, argv, env=env)
        assert done.exit_code == 0, (done.output, done.exception)

    def _run(self, given: dict[str, Any], words: tuple[str, ...]) -> Result:
        given = {"task": self.root / "task.json", "ledger": self.ledger} | given
        given = {"outbox": self.outbox} | given
        options = [w for k, v in given.items() if v is not None for w in (f"--{k}", v)]
        env = {"XDG_STATE_HOME": str(self.root / "state")}
        argv = ["label", *map(str, options), "--yes", *words]
        return CliRunner().invoke(cli_client.app, argv, env=env)

    def entries(self) -> list[Entry]:
        """Return what the ledger counts."""
        if not self.ledger.exists():
            return []
        with Ledger(self.ledger) as ledger:
            return ledger.entries()

    def envelopes(self) -> list[bytes]:
        """Return what is to be sent."""
        return [path.read_bytes() for path in sorted(self.outbox.glob("*.json"))]

    def send(self, given: Server) -> None:
        """Put all envelopes into the server's inbox."""
        inbox = given.project.inbox(NAME)
        inbox.mkdir(parents=True, exist_ok=True)
        for path in self.outbox.glob("*.json"):
            (inbox / path.name).write_bytes(path.read_bytes())

    def refusal(self, result: Result) -> str:
        """Return why nothing was released; nothing was reserved or written."""
        assert isinstance(result.exception, UserError), result.output
        assert self.entries() == []
        assert not self.outbox.exists() or self.envelopes() == []
        return str(result.exception)


def told(result: Result) -> dict[str, Any]:
    """Return what a command that went well said as JSON."""
    assert result.exit_code == 0, (result.output, result.exception)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def labels_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the registry's own table: record and label."""
    return table.rename(columns={"person": "record"})[["record", "label"]]
