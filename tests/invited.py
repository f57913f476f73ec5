"""A client's folder, and the servers that send signed tasks and invitations to it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from curvote.base.errors import UserError
from curvote.cli.commands import client as cli_client
from curvote.ledger import places
from curvote.ledger.amounts import Entry
from curvote.ledger.book import Ledger
from curvote.wire.envelope import Invitation, issue_invitations
from curvote.wire.signing import ServerKey
from curvote.wire.task import Task
from tests.rounds import REPORTS

CURVE = "0.5,-1,2.25,0\n"


class Home:
    """A client's working folder: curve, task, invitation."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        root.mkdir()
        monkeypatch.chdir(root)
        self.server = ServerKey.at(root.parent / "server.pem")
        (root / "curve.csv").write_text(CURVE)
        self.invite(REPORTS)

    def invite(self, task: Task, server: ServerKey | None = None) -> Invitation:
        """Put a task and a new invitation to it into the folder."""
        by = server or self.server
        (invitation,) = issue_invitations(task, 1, by.fingerprint)
        self.publish(task.to_json(), by)
        (self.root / "invitation.json").write_text(json.dumps(invitation.to_json()))
        return invitation

    def publish(
        self,
        task: dict[str, Any],
        server: ServerKey | None = None,
        seal_to: str | None = None,
    ) -> None:
        """Sign whatever a server may call a task."""
        document = {"task": task, "seal_to": seal_to}
        data = (server or self.server).sign(document)
        (self.root / "task.json").write_bytes(data)

    def words(self, command: str, **changes: str) -> list[str]:
        """Return the command line of a release."""
        given = {"task": "task.json", "curve": "curve.csv", "label": "yes"}
        given |= {"invitation": "invitation.json"} | changes
        return [command, *(w for k, v in given.items() for w in (f"--{k}", v))]

    def client(self, command: str, *more: str, **changes: str) -> Result:
        """Run `curvote client report`, `vote` or `answer`."""
        return run(*self.words(command, **changes), *more)

    def refusal(self, command: str, *more: str, **changes: str) -> str:
        """Return what a refused command says; nothing was reserved or published."""
        before = self.entries(), envelopes()
        result = self.client(command, *more, **changes)
        assert isinstance(result.exception, UserError), result.output
        assert (self.entries(), envelopes()) == before
        return str(result.exception)

    def entries(self) -> list[Entry]:
        """Return what the user's own ledger counts."""
        path = places.ledger_path()
        if not path.exists():
            return []
        with Ledger(path) as ledger:
            return ledger.entries()


def run(*words: str, yes: bool = True) -> Result:
    """Run `curvote client`; ``yes``: with the consent to a server that is new."""
    agreed = ["--yes"] * (yes and words[0] in {"report", "vote", "answer"})
    return CliRunner().invoke(cli_client.app, [*words, *agreed])


def refused(*words: str) -> str:
    """Return what a refused command says."""
    result = run(*words)
    assert isinstance(result.exception, UserError), result.output
    return str(result.exception)


def envelopes() -> set[Path]:
    """Return what the user's outbox holds, also what was begun there."""
    return set(places.outbox_path().glob("*")) - {places.outbox_path() / ".lock"}


def printed(result: Result) -> Any:
    """Return the JSON document that a command printed."""
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)
