"""An inbox, and what stands in it."""

import hashlib
from pathlib import Path

from curvote.intake.box import Intake
from curvote.intake.inbox import InboxResult, accept_inbox
from curvote.messages.message import parse_messages
from curvote.wire.envelope import issue_invitations, seal_message
from tests.rounds import REPORTS, payload

N = 8


class Box:
    """An inbox, its quarantine, and the envelopes of invited clients."""

    def __init__(self, root: Path) -> None:
        self.inbox, self.kept = root / "inbox", root / "quarantine"
        self.inbox.mkdir()
        self.intake = Intake(root / "intake.sqlite")
        invited = issue_invitations(REPORTS, N)
        given = {"pipeline": "p", "needed": 1, "invitations": invited}
        self.intake.open_round("one", task=REPORTS, **given)
        self.sent = [
            seal_message(i, payload(REPORTS, i, k)) for k, i in enumerate(invited)
        ]
        self.free = iter(self.sent)

    def put(self, name: str, data: bytes | None = None) -> Path:
        """Put a file there, by default the next client's envelope, freshly written."""
        path = self.inbox / name
        path.write_bytes(next(self.free) if data is None else data)
        return path

    def take(self) -> InboxResult:
        """Take all in."""
        return accept_inbox(self.intake, self.inbox, self.kept, parse_messages)

    def names(self) -> set[str]:
        """Return what the inbox holds."""
        return {path.name for path in self.inbox.iterdir()}

    def quarantined(self) -> list[bytes]:
        """Return the envelopes that were set aside; each has its reason beside it."""
        found = sorted(self.kept.glob("*.json"))
        for path in found:
            assert path.stem == hashlib.sha256(path.read_bytes()).hexdigest()
            assert path.with_suffix(".reason.txt").read_text()
            assert path.stat().st_mode & 0o077 == 0
        assert len([*self.kept.glob("*")]) == 2 * len(found)
        return [path.read_bytes() for path in found]
