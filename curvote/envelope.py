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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from curvote import jws, sealed
from curvote.errors import InternalError, UserError
from curvote.invitation import (
    KEY_DIGITS,
    Bits128,
    Digest,
    Invitation,
    issue,
    issue_each,
)
from curvote.strict_json import canonical, parse, said

__all__ = ["Envelope", "Invitation", "genuine", "issue", "issue_each", "read", "seal"]

FORMAT: Final = 2
LARGEST: Final = sealed.LARGEST
# A number takes as many characters in the padded text, the longest takes 24.
WIDTH: Final = 32
_TYPE: Final = "curvote-envelope"


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
    same_format = len(key) == KEY_DIGITS[envelope.format]
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
