"""Envelopes: the files that go between a server and the clients it invited.

The server gives each client an invitation: a random id and a random key. The client
seals its message with the key. Whoever sees envelopes but not invitations can neither
alter one nor forge one; the message itself is no secret, its noise protects the client.
The server knows every key: a seal proves nothing against the server.

An envelope is a JWS (RFC 7515) over bytes, so a client in any language writes numbers
as it likes. Invitations of format 1, issued before, are answered in format 1: JSON
whose seal is over its canonical text.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import SystemRandom
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from curvote import jws, sealed, validate
from curvote.errors import InternalError, UserError
from curvote.strict_json import canonical, parse, said
from curvote.task import Task

FORMAT: Final = 2
LARGEST: Final = sealed.LARGEST
# A number takes as many characters in the padded text, the longest takes 24.
WIDTH: Final = 32
_TYPE: Final = "curvote-envelope"
_KEY_DIGITS: Final = {1: 32, 2: 64}

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Bits128 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


@dataclass(frozen=True)
class Invitation:
    """The right to send one message for one task.

    ``id`` is 128 random bits, ``key`` 256 (of format 1: 128), as hex digits; the key is
    a secret between the server and the client. ``task`` is the task's digest, ``asks``
    the message it asks for, ``about`` the candidate to judge (None where none is).
    ``server`` is the fingerprint of the key that signs the task, ``seal_to`` the key
    to seal the envelope to; None: the task alone says (a carrier could exchange it).
    """

    id: str
    key: str = field(repr=False)
    task: str
    asks: str
    about: int | None = None
    server: str | None = None
    seal_to: str | None = None

    @property
    def format(self) -> int:
        """1 where the key has 128 bits, else 2; its envelope has the same."""
        return 1 if len(self.key) == _KEY_DIGITS[1] else FORMAT

    @property
    def file_name(self) -> str:
        """A name for the envelope's file that tells nobody the invitation."""
        code = hmac.digest(bytes.fromhex(self.key), b"curvote file name", "sha256")
        return f"{code.hex()[:32]}.json"

    def refuse_other_key(self, seal_to: str | None) -> None:
        """Refuse a task whose ``seal_to`` is not the one that the invitation names."""
        if self.seal_to not in (None, seal_to):
            raise UserError(
                "the invitation asks for an envelope sealed to another key than the"
                " task: somebody exchanged the task; get it from its server again."
            )

    def to_json(self) -> dict[str, Any]:
        """Return the invitation as plain JSON values, its key included."""
        values = {
            "format": self.format,
            "id": self.id,
            "key": self.key,
            "task": self.task,
            "asks": self.asks,
            "about": self.about,
        }
        if self.format == 1:
            return values
        return values | {"server": self.server, "seal_to": self.seal_to}

    @classmethod
    def from_json(cls, text: Any) -> Invitation:
        """Build the invitation that `to_json` wrote; anything else is a UserError."""
        given = text.get("format") if isinstance(text, dict) else None
        form = _Written1 if given == 1 else _Written2
        try:
            written = form.model_validate(text)
        except ValidationError as error:
            raise UserError(f"not an invitation: {said(error)}.") from None
        return cls(**written.model_dump(exclude={"format"}))


@dataclass(frozen=True)
class Envelope:
    """What stands in an envelope; ``seal``, a code of ``sealed``, is to be checked.

    ``task`` is the digest of the task that is answered, ``payload`` the message.
    """

    format: int
    task: str
    invitation: str
    payload: dict[str, Any]
    sealed: bytes = field(repr=False)
    seal: bytes = field(repr=False)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Written1(_Strict):
    format: Annotated[int, Field(ge=1, le=1)]
    id: Bits128
    key: Bits128
    task: Digest
    asks: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    about: Annotated[int, Field(ge=0, lt=2**31)] | None


class _Written2(_Written1):
    format: Annotated[int, Field(ge=2, le=2)]
    key: Digest  # as many bits
    server: Digest | None
    seal_to: Digest | None = None


class _Envelope1(_Strict):
    format: Annotated[int, Field(ge=1, le=1)]
    task: Digest
    invitation: Bits128
    payload: dict[str, Any]
    seal: Digest


class _Header(_Strict):
    alg: Literal["HS256"]
    kid: Bits128
    typ: Literal["curvote-envelope"]


class _Content(_Strict):
    message: dict[str, Any]
    task: Digest


def issue(
    task: Task, count: int, server: str | None = None, seal_to: str | None = None
) -> list[Invitation]:
    """Return ``count`` new invitations to one task, with ``server`` and ``seal_to``.

    If candidates are up for a vote, each is judged by equally many, or by one more than
    others; the operating system's randomness decides which, and in what order.
    """
    validate.at_least(1, count=count)
    digest = task.digest()
    asked = digest, task.asks
    return [
        Invitation(
            os.urandom(16).hex(), os.urandom(32).hex(), *asked, about, server, seal_to
        )
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


def seal(
    invitation: Invitation, payload: Mapping[str, Any], seal_to: str | None = None
) -> bytes:
    """Return the envelope of ``payload``: one line, ended by a line feed.

    Its length says how many numbers the payload has and nothing about them. ``seal_to``
    is that of the signed task: given one, the envelope is closed to that key, and who
    carries it learns its size only. UserError: it is no such key, or not the one that
    the invitation names.
    """
    invitation.refuse_other_key(seal_to)
    if invitation.format == 1:
        line = _sealed_1(invitation, payload)
    else:
        header = _header(invitation.id)
        content = _padded({"message": dict(payload), "task": invitation.task})
        line = jws.made(header, content, lambda text: _code(invitation.key, text))
    return line if seal_to is None else sealed.closed(line, seal_to)


def genuine(envelope: Envelope, key: str) -> bool:
    """Say whether the owner of ``key`` sealed exactly this; in constant time."""
    same_format = len(key) == _KEY_DIGITS[envelope.format]
    code = _code(key, envelope.sealed)
    return same_format and hmac.compare_digest(code, envelope.seal)


def read(data: bytes) -> Envelope:
    """Return the envelope in ``data``; its seal is still to be checked.

    Refused (UserError), each with its own reason: whatever `parse` refuses over 1 MiB,
    another format, keys that are missing, unknown or of another form, and any bytes but
    the canonical ones: nobody can write a message in a second way.
    """
    found = parse(data, LARGEST)
    if not isinstance(found, dict):
        raise UserError("not an envelope: the file holds no JSON object.")
    if "protected" in found:
        return _read_2(data)
    if type(found.get("format")) is not int or found["format"] != 1:
        raise UserError(
            f"format is {ascii(found.get('format'))[:20]}; this version reads 1 and 2."
        )
    return _read_1(data, found)


def _read_2(data: bytes) -> Envelope:
    parts = jws.parts(data, LARGEST)
    try:
        kid = _Header.model_validate(parse(parts.protected, LARGEST)).kid
        content = _Content.model_validate(parse(parts.payload, LARGEST))
    except ValidationError as error:
        raise UserError(f"not an envelope: {said(error)}.") from None
    if canonical(_header(kid)) != parts.protected:
        raise UserError("its header is not written in the one canonical way.")
    signed, code = parts.signed, parts.signature
    return Envelope(FORMAT, content.task, kid, content.message, signed, code)


def _header(invitation: str) -> dict[str, str]:
    return {"alg": "HS256", "kid": invitation, "typ": _TYPE}


def _padded(content: Mapping[str, Any]) -> bytes:
    """Return JSON text, ended by spaces: as long as if numbers took their width."""
    text, full = canonical(content), len(canonical(_widest(content)))
    if len(text) > full:
        raise InternalError(f"{len(text)} characters where {full} were to do")
    return text.ljust(full)


def _widest(value: Any) -> Any:
    """Return the value with a text of the same width for each number and truth."""
    if isinstance(value, Mapping):
        return {name: _widest(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_widest(each) for each in value]
    return "0" * (WIDTH - 2) if isinstance(value, bool | int | float) else value


def _sealed_1(invitation: Invitation, payload: Mapping[str, Any]) -> bytes:
    body = {
        "format": 1,
        "task": invitation.task,
        "invitation": invitation.id,
        "payload": dict(payload),
    }
    seal_ = _code(invitation.key, canonical(body)).hex()
    return canonical(body | {"seal": seal_}) + b"\n"


def _read_1(data: bytes, found: dict[str, Any]) -> Envelope:
    try:
        told = _Envelope1.model_validate(found)
    except ValidationError as error:
        raise UserError(f"not an envelope: {said(error)}.") from None
    if canonical(_unsigned_zeros(found)) + b"\n" != data:
        raise UserError("not written in the one canonical way: sorted, no spaces, LF.")
    body = canonical(told.model_dump(exclude={"seal"}))
    code = bytes.fromhex(told.seal)
    return Envelope(1, told.task, told.invitation, told.payload, body, code)


def _unsigned_zeros(value: Any) -> Any:
    """Return the value with 0.0 for -0.0, which no honest client ever sent."""
    if isinstance(value, dict):
        return {name: _unsigned_zeros(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_unsigned_zeros(each) for each in value]
    return value + 0.0 if isinstance(value, float) else value


def _code(key: str, text: bytes) -> bytes:
    return jws.hs256(bytes.fromhex(key), text)
