"""How a lone client's command is called, and what it leaves: known here alone."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from curvote.client.ledger import Ledger
from curvote.client.standing import POPULATION
from curvote.envelope import Invitation
from curvote.signed import ServerKey
from curvote.task import Task
from curvote.validate import FloatArray

OUTBOX = "outbox"


def argv(
    folder: Path, task: Task, invitation: Invitation, curve: FloatArray, label: float
) -> list[str]:
    """Write the client's files into ``folder`` and return the command's words."""
    files = {
        "task": _server().sign({"task": task.to_json(), "seal_to": None}).decode(),
        "invitation": json.dumps(invitation.to_json()),
        "curve": "\n".join(repr(float(value)) for value in curve),
    }
    with Ledger(folder / "ledger.sqlite") as ledger:  # the consent of this client
        ledger.set_up(POPULATION, task.budget)
    for name, text in files.items():
        (folder / name).with_suffix(_SUFFIX[name]).write_text(text, encoding="utf-8")
    given = {name: str((folder / name).with_suffix(_SUFFIX[name])) for name in files}
    given |= {"label": task.classes[1 if label > 0 else 0]}
    given |= {"ledger": str(folder / "ledger.sqlite"), "outbox": str(folder / OUTBOX)}
    return ["client", "answer", *(f"--{name}={value}" for name, value in given.items())]


@cache
def _server() -> ServerKey:
    """Return one key for all calls: what is shown must not differ by the server."""
    return ServerKey(Ed25519PrivateKey.generate())


_SUFFIX = {"task": ".json", "invitation": ".json", "curve": ".csv"}


def payload(envelope: bytes) -> dict[str, Any]:
    """Return the message in an envelope: an object, or a JWS payload (RFC 7515)."""
    found = json.loads(envelope)["payload"]
    if isinstance(found, str):
        found = json.loads(urlsafe_b64decode(found + "=" * (-len(found) % 4)))
    message: dict[str, Any] = found.get("message", found)
    return message


def beside(envelope: bytes) -> dict[str, Any]:
    """Return what an envelope says beside the message and its seal."""
    document = json.loads(envelope)
    sealed = ("payload", "seal", "signature")
    rest = {name: value for name, value in document.items() if name not in sealed}
    return rest | {"names": sorted(document)}


def columns(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as columns of one row."""
    return {name: np.array([value]) for name, value in message.items()}
