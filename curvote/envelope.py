"""Invitations and envelopes: the files that servers and clients exchange.

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
    issue_invitations,
    issue_record_invitations,
)
from curvote.strict_json import canonical_json, describe_errors, parse_json

__all__ = [
    "Envelope",
    "Invitation",
    "is_genuine",
    "issue_invitations",
    "issue_record_invitations",
    "read_envelope",
    "seal_message",
]

ENVELOPE_FORMAT: Final = 2
LARGEST_FILE: Final = sealed.LARGEST_ENVELOPE
# A number takes as many characters in the padded text, the longest takes 24.
NUMBER_WIDTH: Final = 32
_TYPE: Final = "curvote-envelope"


@dataclass(frozen=True)
class Envelope:
    """The content of an envelope, whose ``seal`` is still to be checked.

    ``task`` is the digest of the task that is answered, ``payload`` the message.
    """

    format: int
    task: str
    invitation: str
    payload: dict[str, Any]
    sealed: bytes = field(repr=False)
    seal: bytes = field(repr=False)


class _StrictEnvelope(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _EnvelopeFormat1(_StrictEnvelope):
    format: Annotated[int, Field(ge=1, le=1)]
    task: Digest
    invitation: Bits128
    payload: dict[str, Any]
    seal: Digest


class _EnvelopeHeader(_StrictEnvelope):
    alg: Literal["HS256"]
    kid: Bits128
    typ: Literal["curvote-envelope"]


class _EnvelopeContent(_StrictEnvelope):
    message: dict[str, Any]
    task: Digest


def seal_message(
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
        line = _seal_format_1(invitation, payload)
    else:
        header = _envelope_header(invitation.id)
        content = _pad_content({"message": dict(payload), "task": invitation.task})
        line = jws.sign_payload(
            header, content, lambda text: _seal_code(invitation.key, text)
        )
    return line if seal_to is None else sealed.seal_to_key(line, seal_to)


def is_genuine(envelope: Envelope, key: str) -> bool:
    """Return whether the owner of ``key`` sealed exactly this envelope."""
    same_format = len(key) == KEY_DIGITS[envelope.format]
    code = _seal_code(key, envelope.sealed)
    return same_format and hmac.compare_digest(code, envelope.seal)


def read_envelope(data: bytes) -> Envelope:
    """Return the envelope in ``data``; its seal is still to be checked.

    Refused (UserError), each with its own reason: whatever `parse_json` refuses over 1
    MiB, another format, keys that are missing, unknown or of another form, and any
    bytes but the canonical ones: nobody can write a message in a second way.
    """
    value = parse_json(data, LARGEST_FILE)
    if not isinstance(value, dict):
        raise UserError("not an envelope: the file holds no JSON object.")
    if "protected" in value:
        return _read_format_2(data)
    if type(value.get("format")) is not int or value["format"] != 1:
        raise UserError(
            f"format is {ascii(value.get('format'))[:20]}; this version reads 1 and 2."
        )
    return _read_format_1(data, value)


def _read_format_2(data: bytes) -> Envelope:
    parts = jws.parse_signature(data, LARGEST_FILE)
    try:
        kid = _EnvelopeHeader.model_validate(
            parse_json(parts.protected, LARGEST_FILE)
        ).kid
        content = _EnvelopeContent.model_validate(
            parse_json(parts.payload, LARGEST_FILE)
        )
    except ValidationError as error:
        raise UserError(f"not an envelope: {describe_errors(error)}.") from None
    if canonical_json(_envelope_header(kid)) != parts.protected:
        raise UserError("its header is not written in the one canonical way.")
    signed, code = parts.signed, parts.signature
    return Envelope(ENVELOPE_FORMAT, content.task, kid, content.message, signed, code)


def _envelope_header(invitation: str) -> dict[str, str]:
    return {"alg": "HS256", "kid": invitation, "typ": _TYPE}


def _pad_content(content: Mapping[str, Any]) -> bytes:
    """Return JSON text padded so that its length tells no number."""
    text, full = canonical_json(content), len(canonical_json(_widest_numbers(content)))
    if len(text) > full:
        raise InternalError(f"{len(text)} characters where {full} were to do")
    return text.ljust(full)


def _widest_numbers(value: Any) -> Any:
    """Return a value with every number replaced by a longest text."""
    if isinstance(value, Mapping):
        return {name: _widest_numbers(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_widest_numbers(item) for item in value]
    return "0" * (NUMBER_WIDTH - 2) if isinstance(value, bool | int | float) else value


def _seal_format_1(invitation: Invitation, payload: Mapping[str, Any]) -> bytes:
    body = {
        "format": 1,
        "task": invitation.task,
        "invitation": invitation.id,
        "payload": dict(payload),
    }
    seal_ = _seal_code(invitation.key, canonical_json(body)).hex()
    return canonical_json(body | {"seal": seal_}) + b"\n"


def _read_format_1(data: bytes, value: dict[str, Any]) -> Envelope:
    try:
        form = _EnvelopeFormat1.model_validate(value)
    except ValidationError as error:
        raise UserError(f"not an envelope: {describe_errors(error)}.") from None
    if canonical_json(_unsigned_zeros(value)) + b"\n" != data:
        raise UserError("not written in the one canonical way: sorted, no spaces, LF.")
    body = canonical_json(form.model_dump(exclude={"seal"}))
    code = bytes.fromhex(form.seal)
    return Envelope(1, form.task, form.invitation, form.payload, body, code)


def _unsigned_zeros(value: Any) -> Any:
    """Return the value with 0.0 in place of -0.0."""
    if isinstance(value, dict):
        return {name: _unsigned_zeros(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_unsigned_zeros(item) for item in value]
    return value + 0.0 if isinstance(value, float) else value


def _seal_code(key: str, text: bytes) -> bytes:
    return jws.hmac_sha256(bytes.fromhex(key), text)
