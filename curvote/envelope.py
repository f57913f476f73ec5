"""Envelopes: the files that go between a server and the clients it invited.

The server gives each client an invitation: a random id and a random key. The client
seals its message with the key. Whoever sees envelopes but not invitations can neither
alter one nor forge one; the message itself is no secret, its noise protects the client.
The server knows every key: a seal proves nothing against the server.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import SystemRandom
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from curvote import validate
from curvote.errors import UserError
from curvote.task import Task

FORMAT = 1
LARGEST = 2**18  # bytes: ten thousand numbers fit
DEEPEST = 8

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Bits128 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


@dataclass(frozen=True)
class Invitation:
    """The right to send one message for one task.

    ``id`` and ``key`` are 128 random bits each, 32 hex digits; the key is a secret
    between the server and the client. ``task`` is the task's digest, ``asks`` the
    message it asks for, ``about`` the candidate to judge (None where none is).
    """

    id: str
    key: str = field(repr=False)
    task: str
    asks: str
    about: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the invitation as plain JSON values, its key included."""
        return {
            "format": FORMAT,
            "id": self.id,
            "key": self.key,
            "task": self.task,
            "asks": self.asks,
            "about": self.about,
        }

    @classmethod
    def from_json(cls, text: Any) -> Invitation:
        """Build the invitation that `to_json` wrote; anything else is a UserError."""
        try:
            written = _WrittenInvitation.model_validate(text)
        except ValidationError as error:
            raise UserError(f"not an invitation: {said(error)}.") from None
        return cls(**written.model_dump(exclude={"format"}))


class Envelope(BaseModel):
    """A sealed message: task digest, invitation id, payload and seal, nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format: Literal[1]
    task: Digest
    invitation: Bits128
    payload: dict[str, Any]
    seal: Digest


class _WrittenInvitation(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal[1]
    id: Bits128
    key: Bits128
    task: Digest
    asks: Annotated[str, Field(min_length=1)]
    about: Annotated[int, Field(ge=0)] | None


def issue(task: Task, count: int) -> list[Invitation]:
    """Return ``count`` new invitations to one task.

    If candidates are up for a vote, each is judged by equally many, or by one more than
    others; the operating system's randomness decides which, and in what order.
    """
    validate.at_least(1, count=count)
    digest = task.digest()
    return [
        Invitation(os.urandom(16).hex(), os.urandom(16).hex(), digest, task.asks, about)
        for about in _subjects(task, count)
    ]


def _subjects(task: Task, count: int) -> list[int | None]:
    if task.candidates is None:
        return [None] * count
    up = list(range(len(task.candidates.coef)))
    SystemRandom().shuffle(up)
    subjects: list[int | None] = [up[i % len(up)] for i in range(count)]
    SystemRandom().shuffle(subjects)
    return subjects


def seal(invitation: Invitation, payload: Mapping[str, Any]) -> bytes:
    """Return the envelope of ``payload``: one line of canonical JSON.

    Its seal is the HMAC-SHA256, under the invitation's key, of the line without it.
    """
    body = {
        "format": FORMAT,
        "task": invitation.task,
        "invitation": invitation.id,
        "payload": dict(payload),
    }
    return canonical(body | {"seal": _code(body, invitation.key)}) + b"\n"


def genuine(envelope: Envelope, key: str) -> bool:
    """Say whether the owner of ``key`` sealed exactly this; in constant time."""
    body = envelope.model_dump(exclude={"seal"})
    return hmac.compare_digest(_code(body, key), envelope.seal)


def _code(body: Mapping[str, Any], key: str) -> str:
    return hmac.new(bytes.fromhex(key), canonical(body), hashlib.sha256).hexdigest()


def canonical(value: Any) -> bytes:
    """Return the one way to write a JSON value: sorted keys, no spaces, ASCII."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def read(data: bytes) -> Envelope:
    """Return the envelope in ``data``; its seal is still to be checked.

    Refused, each with its own reason (UserError): over 256 KiB, no UTF-8, no JSON, cut
    off, followed by something, a key given twice, a number that is not finite, another
    format, and keys that are missing, unknown or of another form.
    """
    found = parse(data)
    if not isinstance(found, dict):
        raise UserError("not an envelope: the file holds no JSON object.")
    if found.get("format") != FORMAT:
        raise UserError(
            f"format is {str(found.get('format'))[:20]!r}; this version reads {FORMAT}."
        )
    try:
        return Envelope.model_validate(found)
    except ValidationError as error:
        raise UserError(f"not an envelope: {said(error)}.") from None


def parse(data: bytes) -> Any:
    """Return the JSON value in ``data``, read strictly; UserError: what is wrong."""
    if len(data) > LARGEST:
        raise UserError(f"{len(data)} bytes; at most {LARGEST} are read.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"not UTF-8 text: byte {error.start} is wrong.") from None
    try:
        value = _STRICT.decode(text)
        deep = _deeper(value, DEEPEST)
    except json.JSONDecodeError as error:
        raise UserError(_not_json(text, error)) from None
    except RecursionError:
        deep = True
    if deep:
        raise UserError(f"its values are nested over {DEEPEST} deep.")
    return value


def said(error: ValidationError) -> str:
    """Return pydantic's first complaint and its place, never the value given."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part)[:40] for part in first["loc"]) or "the value"
    return f"{place}: {first['msg'].removeprefix('Value error, ')}"


def _not_json(text: str, error: json.JSONDecodeError) -> str:
    stripped = text.strip()
    if error.msg == "Extra data":
        return f"something follows the JSON value, from character {error.pos} on."
    if stripped.startswith("{") and not stripped.endswith("}"):
        return "cut off: the closing brace is missing."
    return f"not JSON: {error.msg} at character {error.pos}."


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UserError("a key is given twice; readers would disagree on its value.")
    return found


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise UserError(f"{text[:20]} is not a finite number.")
    return value


def _whole(text: str) -> int:
    if len(text) > 20:
        raise UserError(f"{text[:20]}... is a whole number of over 64 bits.")
    return int(text)


_STRICT = json.JSONDecoder(
    object_pairs_hook=_once,
    parse_float=_number,
    parse_int=_whole,
    parse_constant=_number,
)


def _deeper(value: Any, room: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return not room or any(_deeper(each, room - 1) for each in inner)
