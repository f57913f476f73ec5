"""Invitations and envelopes: the files that servers and clients exchange.

Of format 1 are those issued before, with shorter keys; of format 3 those for a sender
with a name: a server that holds the records of many people. Of format 4 are those about
one public record, of which whoever keeps its secret part is asked.
"""

from __future__ import annotations

import hmac
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from secrets import SystemRandom
from typing import Annotated, Any, Final, Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from pydantic import Field, TypeAdapter, ValidationError

from curvote.base import validate
from curvote.base.errors import InternalError, UserError
from curvote.wire import signing
from curvote.wire.strict_json import (
    StrictForm,
    canonical_json,
    describe_errors,
    parse_json,
    read_form,
)
from curvote.wire.task import AnyTask, Word

LARGEST_ENVELOPE: Final = 2**20  # bytes: ten thousand numbers fit, sealed or not
INFO: Final = b"curvote sealed envelope"
_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


class _SealedForm(StrictForm):
    sealed: str
    to: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def new_private_key() -> str:
    """Return a new private key, 64 hex digits."""
    return X25519PrivateKey.generate().private_bytes_raw().hex()


def public_key(private: str) -> str:
    """Return the public key of a private one: 64 hex digits."""
    return _load_private_key(private).public_key().public_bytes_raw().hex()


def seal_to_key(envelope: bytes, seal_to: str) -> bytes:
    """Return the envelope encrypted to a public key: one line of JSON.

    UserError: nothing can be sealed to this key.
    """
    try:
        key = X25519PublicKey.from_public_bytes(bytes.fromhex(seal_to))
        octets = _SUITE.encrypt(envelope, key, info=INFO)
    except ValueError:
        raise UserError("the server's seal_to is no X25519 key.") from None
    return _sealed_line(signing.to_base64url(octets), seal_to)


def is_sealed(data: bytes) -> bool:
    """Return whether ``data`` looks like a sealed envelope."""
    return data.startswith(b'{"sealed":')


def open_sealed(
    data: bytes, find_private: Callable[[str], str | None]
) -> tuple[str, bytes]:
    """Return the public key that ``data`` was sealed to, and the envelope.

    ``find_private`` returns the private key of a public one, None for an unknown one.
    UserError: another form than that of `seal_to_key`, an unknown key, any other
    content than what was sealed.
    """
    seal_to, octets = read_sealed(data)
    private = find_private(seal_to)
    if private is None:
        raise UserError(
            f"sealed to {seal_to[:12]}, which is no key of an open round here."
        )
    try:
        return seal_to, _SUITE.decrypt(octets, _load_private_key(private), info=INFO)
    except (InvalidTag, ValueError):
        words = "the sealed part was altered, or made for another key."
        raise UserError(words) from None


def read_sealed(data: bytes) -> tuple[str, bytes]:
    """Return the public key that ``data`` was sealed to, and what is encrypted.

    UserError: another form than that of `seal_to_key`.
    """
    value = parse_json(data, LARGEST_ENVELOPE)
    form = read_form(_SealedForm, value, "not a sealed envelope: ")
    octets = signing.from_base64url(form.sealed)
    if _sealed_line(form.sealed, form.to) != data:
        raise UserError("not written in the one canonical way: sorted, no spaces, LF.")
    return form.to, octets


def _sealed_line(sealed: str, to: str) -> bytes:
    return canonical_json({"sealed": sealed, "to": to}) + b"\n"


def _load_private_key(text: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(text))


INVITATION_FORMAT: Final = 2
NAMED_FORMAT: Final = 3
RECORD_FORMAT: Final = 4
KEY_DIGITS: Final = {1: 32, 2: 64}

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Bits128 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
_NAME_LIST: Final = TypeAdapter(list[Word])


@dataclass(frozen=True)
class Invitation:
    """The right to send one message for one task.

    ``id`` is 128 random bits, ``key`` 256 (of format 1: 128), as hex digits; the key is
    a secret between the server and the client. ``task`` is the task's digest, ``asks``
    the message it asks for, ``about`` the candidate to judge (None where none is).
    ``signer`` is the fingerprint of the key that signs the task, ``seal_to`` the key
    to seal the envelope to; None: the task alone says (a carrier could exchange it).
    ``server`` names the sender, where a task names those that it asks; ``task`` is then
    the digest of what this one is asked. ``record`` is the public name of the record
    that the message belongs to, where it belongs to one.
    """

    id: str
    key: str = field(repr=False)
    task: str
    asks: str
    about: int | None = None
    signer: str | None = None
    seal_to: str | None = None
    server: str | None = None
    record: str | None = None

    @property
    def format(self) -> int:
        """The version of the invitation's format, 1 to 4, by its fields.

        Its envelope is of format 1, or else of 2.
        """
        if len(self.key) == KEY_DIGITS[1]:
            return 1
        if self.record is not None:
            return RECORD_FORMAT
        return INVITATION_FORMAT if self.server is None else NAMED_FORMAT

    @property
    def subject(self) -> int | str | None:
        """The candidate or the record that the message is about, or None."""
        return self.about if self.record is None else self.record

    @property
    def file_name(self) -> str:
        """A name for the envelope's file that tells nobody the invitation."""
        code = hmac.digest(bytes.fromhex(self.key), b"curvote file name", "sha256")
        return f"{code.hex()[:32]}.json"

    def refuse_other_key(self, seal_to: str | None) -> None:
        """Refuse a task with another sealing key than the invitation's."""
        if self.seal_to not in (None, seal_to):
            raise UserError(
                "the invitation asks for an envelope sealed to another key than the"
                " task: somebody exchanged the task; get it from its server again."
            )

    def to_json(self) -> dict[str, Any]:
        """Return the invitation as plain JSON values, its key included."""
        names = _FORMS[self.format].model_fields
        values = {name: getattr(self, name) for name in names}
        if self.format == INVITATION_FORMAT:
            values["server"] = self.signer
        return values

    @classmethod
    def from_json(cls, text: Any) -> Invitation:
        """Build the invitation that `to_json` wrote; anything else is a UserError."""
        version = text.get("format") if isinstance(text, dict) else None
        form_number = version if type(version) is int else INVITATION_FORMAT
        form = _FORMS.get(form_number, _InvitationFormat2)
        fields = dict(read_form(form, text, "not an invitation: "))
        del fields["format"]
        if version == INVITATION_FORMAT:
            fields["signer"] = fields.pop("server")
        return cls(**fields)


class _InvitationForm(StrictForm):
    format: int
    id: Bits128
    key: Digest  # as many bits
    task: Digest
    asks: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class _InvitationFormat1(_InvitationForm):
    format: Annotated[int, Field(ge=1, le=1)]
    key: Bits128
    about: Annotated[int, Field(ge=0, lt=2**31)] | None


class _InvitationFormat2(_InvitationFormat1):
    format: Annotated[int, Field(ge=2, le=2)]
    key: Digest
    server: Digest | None
    seal_to: Digest | None = None


class _InvitationFormat3(_InvitationFormat1):
    format: Annotated[int, Field(ge=3, le=3)]
    key: Digest
    about: None
    server: Word
    signer: Digest
    seal_to: Digest | None = None


class _InvitationFormat4(_InvitationForm):
    format: Annotated[int, Field(ge=4, le=4)]
    record: Word
    signer: Digest
    seal_to: Digest | None = None


_FORMS: Final[dict[int, type[_InvitationForm]]] = {
    1: _InvitationFormat1,
    INVITATION_FORMAT: _InvitationFormat2,
    NAMED_FORMAT: _InvitationFormat3,
    RECORD_FORMAT: _InvitationFormat4,
}


def issue_invitations(
    task: AnyTask,
    count: int,
    signer: str | None = None,
    seal_to: str | None = None,
    server: str | None = None,
) -> list[Invitation]:
    """Return ``count`` new invitations to one task.

    If candidates are up for a vote, each is judged by equally many, or by one more than
    others; the operating system's randomness decides which, and in what order.
    """
    validate.at_least(1, count=count)
    subjects: list[int | None] = [None] * count
    if task.subject_count is not None:
        places = list(range(task.subject_count))
        SystemRandom().shuffle(places)
        subjects = [places[i % len(places)] for i in range(count)]
        SystemRandom().shuffle(subjects)
    ends: Any = {"signer": signer, "seal_to": seal_to, "server": server}
    digest, asks = task.digest(), task.asks
    return [Invitation(*_secrets(), digest, asks, about, **ends) for about in subjects]


def issue_record_invitations(
    task: AnyTask, records: Sequence[str], signer: str, seal_to: str | None = None
) -> list[Invitation]:
    """Return a new invitation for each of the public ``records``.

    UserError: none, a name that stands twice, or one that is no plain text of 1 to 60
    characters.
    """
    validate.at_least(1, records=len(records))
    if len(set(records)) < len(records):
        repeated = next(name for name, n in Counter(records).items() if n > 1)
        raise UserError(f"record {validate.format_value(repeated)} stands twice.")
    try:
        _NAME_LIST.validate_python(list(records))
    except ValidationError as error:
        words = describe_errors(error)
        raise UserError(f"records is no list of names: {words}.") from None
    ends: Any = {"signer": signer, "seal_to": seal_to}
    fixed = task.digest(), task.asks
    return [Invitation(*_secrets(), *fixed, record=name, **ends) for name in records]


def _secrets() -> tuple[str, str]:
    return os.urandom(16).hex(), os.urandom(32).hex()


ENVELOPE_FORMAT: Final = 2
# A number takes as many characters in the padded text, the longest takes 24.
NUMBER_WIDTH: Final = 32
_TYPE: Final = "curvote-envelope"


@dataclass(frozen=True)
class Envelope:
    """The content of an envelope, whose ``seal`` is still to be checked.

    ``task`` is the digest of the task that is answered, ``payload`` the message.
    ``unaudited`` names the plug-in whose mechanism noised it, "" for curvote's own.
    """

    format: int
    task: str
    invitation: str
    payload: dict[str, Any]
    sealed: bytes = field(repr=False)
    seal: bytes = field(repr=False)
    unaudited: str = ""


class _EnvelopeFormat1(StrictForm):
    format: Annotated[int, Field(ge=1, le=1)]
    task: Digest
    invitation: Bits128
    payload: dict[str, Any]
    seal: Digest


class _EnvelopeHeader(StrictForm):
    alg: Literal["HS256"]
    kid: Bits128
    typ: Literal["curvote-envelope"]


class _EnvelopeContent(StrictForm):
    message: dict[str, Any]
    task: Digest
    unaudited: Word | None = None


def seal_message(
    invitation: Invitation,
    payload: Mapping[str, Any],
    seal_to: str | None = None,
    unaudited: str = "",
) -> bytes:
    """Return the envelope of ``payload``: one line, ended by a line feed.

    Its length says how many numbers the payload has and nothing about them. ``seal_to``
    is that of the signed task: given one, the envelope is closed to that key, and who
    carries it learns its size only. ``unaudited`` names the plug-in whose mechanism
    noised the message. UserError: it is no such key, or not the one that the invitation
    names; a plug-in's message for an invitation of before there were any.
    """
    invitation.refuse_other_key(seal_to)
    if invitation.format == 1:
        if unaudited:
            raise UserError("this invitation is older than mechanisms of plug-ins.")
        body = {
            "format": 1,
            "task": invitation.task,
            "invitation": invitation.id,
            "payload": dict(payload),
        }
        seal_ = _seal_code(invitation.key, canonical_json(body)).hex()
        line = canonical_json(body | {"seal": seal_}) + b"\n"
    else:
        header = _envelope_header(invitation.id)
        mark = {"unaudited": unaudited} if unaudited else {}
        content = _pad_content(
            {"message": dict(payload), "task": invitation.task} | mark
        )
        code = partial(_seal_code, invitation.key)
        line = signing.sign_payload(header, content, code)
    return line if seal_to is None else seal_to_key(line, seal_to)


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
    value = parse_json(data, LARGEST_ENVELOPE)
    if not isinstance(value, dict):
        raise UserError("not an envelope: the file holds no JSON object.")
    if "protected" in value:
        parts = signing.parse_signature(data, LARGEST_ENVELOPE)
        header = parse_json(parts.protected, LARGEST_ENVELOPE)
        kid = read_form(_EnvelopeHeader, header, "not an envelope: ").kid
        inner = parse_json(parts.payload, LARGEST_ENVELOPE)
        content = read_form(_EnvelopeContent, inner, "not an envelope: ")
        if canonical_json(_envelope_header(kid)) != parts.protected:
            raise UserError("its header is not written in the one canonical way.")
        named = ENVELOPE_FORMAT, content.task, kid, content.message
        mark = content.unaudited or ""
        return Envelope(*named, parts.signed, parts.signature, mark)
    if type(value.get("format")) is not int or value["format"] != 1:
        raise UserError(
            f"format is {ascii(value.get('format'))[:20]}; this version reads 1 and 2."
        )
    form = read_form(_EnvelopeFormat1, value, "not an envelope: ")
    if canonical_json(_unsigned_zeros(value)) + b"\n" != data:
        raise UserError("not written in the one canonical way: sorted, no spaces, LF.")
    body = canonical_json(form.model_dump(exclude={"seal"}))
    code = bytes.fromhex(form.seal)
    return Envelope(1, form.task, form.invitation, form.payload, body, code)


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


def _unsigned_zeros(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unsigned_zeros(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_unsigned_zeros(item) for item in value]
    return value + 0.0 if isinstance(value, float) else value


def _seal_code(key: str, text: bytes) -> bytes:
    return signing.hmac_sha256(bytes.fromhex(key), text)
