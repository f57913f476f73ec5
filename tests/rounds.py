"""Small tasks, and honest clients that answer them."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from curvote.base.entropy import SeededEntropy
from curvote.curves.basis import identity
from curvote.curves.encoding import Encoding
from curvote.intake.box import Intake
from curvote.messages.message import client_data, message_of, payload_at
from curvote.wire import signing
from curvote.wire.envelope import Invitation
from curvote.wire.signing import ServerKey
from curvote.wire.strict_json import canonical_json
from curvote.wire.task import Candidates, Task

ENCODING = Encoding(identity(4), "max_abs", feature_map="coefficients")
REPORTS = Task(ENCODING, ("no", "yes"), 1.0, "mrma", "report", mechanism="laplace")
SERVER = ServerKey(Ed25519PrivateKey.generate())
PARTS = ("protected", "payload", "signature")
VOTES = replace(
    REPORTS,
    asks="vote",
    candidates=Candidates(np.ones((3, 4)), np.array([-1.0, 0.0, 1.0])),
)


def payload(task: Task, invitation: Invitation, seed: int = 0) -> dict[str, Any]:
    """Return what an honest client sends."""
    judge = None if invitation.about is None else np.array([invitation.about])
    curve = np.random.default_rng(seed).normal(size=(1, 4))
    known = client_data(task, curve, np.ones(1), judge)
    return payload_at(message_of(task).draw(task, known, SeededEntropy(seed)), 0)


def signed(task: Task, seal_to: str | None = None) -> bytes:
    """Return the task as its server publishes it."""
    return SERVER.sign({"task": task.to_json(), "seal_to": seal_to})


def kept(intake: Intake, round_id: str, name: str) -> list[list[dict[str, Any]]]:
    """Return the messages of each batch of a set, in order of their texts."""
    batches = intake.batches(round_id, name).values()
    return [[m for m, count in b.payloads() for _ in range(count)] for b in batches]


def quiet(*files: Path) -> None:
    """Let files look as if nobody had written to them for a minute."""
    for file in files:
        os.utime(file, (time.time() - 60,) * 2)


def old(invitation: Invitation) -> Invitation:
    """Return an invitation of format 1, with a key of 128 bits."""
    return replace(invitation, key=invitation.key[:32], signer=None)


def edited(sealed: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return the envelope after a change by somebody without the key.

    ``change`` gets the header, the content and the signature of format 2, or the values
    of format 1; what comes out is written in the canonical way.
    """
    found = json.loads(sealed)
    if "protected" not in found:
        change(found)
        return canonical_json(found) + b"\n"
    header, content = (json.loads(signing.from_base64url(found[n])) for n in PARTS[:2])
    values = {"header": header, "signature": found["signature"], **content}
    change(values)
    return line(values.pop("header"), values.pop("signature"), values)


def line(header: Any, signature: str, content: Any) -> bytes:
    """Return the canonical line of a JWS with these parts."""
    texts = (
        signing.to_base64url(canonical_json(header)),
        signing.to_base64url(canonical_json(content)),
        signature,
    )
    return canonical_json(dict(zip(PARTS, texts, strict=True))) + b"\n"
