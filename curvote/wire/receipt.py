"""Receipts: what an intake says of an envelope that it counted.

The leaf of an envelope is SHA-256(salt, SHA-256(its bytes)). The salt comes from
whoever sends, and is kept nowhere else: a key on the server's disk would do as well to
find the same leaf again, but whoever takes the disk of an open round could then try
each message there with each invitation there, as both make an envelope's bytes.

A round signs its receipts with a key of its own, for which the server's key vouches:
the process that listens to the network needs no key that signs tasks.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from pydantic import Field

from curvote.base.errors import UserError
from curvote.wire import signing
from curvote.wire.signing import ServerKey
from curvote.wire.strict_json import StrictForm, canonical_json, parse_json, read_form

# Names the salt of an upload, 64 hex digits.
SALT_HEADER: Final = "Curvote-Salt"
LARGEST: Final = 2**14  # bytes
FORMAT: Final = 1
_TYPE: Final = "curvote-receipt"
_VOUCHED: Final = b"curvote receipt key "  # no JWS begins so

_Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _ReceiptForm(StrictForm):
    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    task: _Hex
    epsilon: Annotated[float, Field(gt=0)]
    leaf: _Hex
    salt: _Hex
    envelope: _Hex


class _Voucher(StrictForm):
    x: str
    signature: str


class _ReceiptHeader(StrictForm):
    alg: Literal["EdDSA"]
    typ: Literal["curvote-receipt"]
    x: str
    by: _Voucher


def envelope_salt(upload: bytes, envelope: bytes) -> bytes:
    """Return the salt of one envelope in an upload with this salt of 32 bytes."""
    return signing.hmac_sha256(upload, hashlib.sha256(envelope).digest())


def envelope_leaf(salt: bytes, envelope: bytes) -> bytes:
    """Return the leaf of an envelope, 32 bytes."""
    return hashlib.sha256(salt + hashlib.sha256(envelope).digest()).digest()


@dataclass(frozen=True)
class Receipt:
    """The receipt of one envelope, whose SHA-256 is ``envelope`` (64 hex digits).

    ``epsilon`` is what the task with digest ``task`` asks for. ``signer`` is the
    fingerprint of the server that stands for it, None of an unsigned one.
    """

    task: str
    epsilon: float
    salt: str
    envelope: str
    signer: str | None = None

    @property
    def leaf(self) -> str:
        """The envelope's leaf in the tree of its round, 64 hex digits."""
        octets = bytes.fromhex(self.salt + self.envelope)
        return hashlib.sha256(octets).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the unsigned receipt as plain JSON values."""
        values = {"format": FORMAT, "leaf": self.leaf} | vars(self)
        del values["signer"]
        return values


@dataclass(frozen=True)
class ReceiptKey:
    """The key with which a round signs receipts, and the server's word for it.

    ``private`` is 64 hex digits, None once the round is closed: nothing is promised
    any more.
    """

    private: str | None
    header: dict[str, Any]

    @classmethod
    def of_round(
        cls, server: ServerKey, task: str, key: Ed25519PrivateKey | None = None
    ) -> ReceiptKey:
        """Return a new key, or ``key``, for a task's round; the server's vouches."""
        key, text = key or Ed25519PrivateKey.generate(), signing.to_base64url
        public = key.public_key().public_bytes_raw()
        x, signature = map(text, server.vouch(_vouched(public, task)))
        header = {"alg": "EdDSA", "by": {"signature": signature, "x": x}, "typ": _TYPE}
        return cls(key.private_bytes_raw().hex(), header | {"x": text(public)})

    def to_text(self) -> str:
        """Return the key as it is kept with its round."""
        text = canonical_json({"header": self.header, "private": self.private})
        return text.decode()

    @classmethod
    def from_text(cls, text: str) -> ReceiptKey:
        """Return the key that `to_text` wrote."""
        return cls(**json.loads(text))

    def sign(self, receipt: Receipt) -> dict[str, Any]:
        """Return the signed receipt as plain JSON values; unsigned without a key."""
        document = receipt.to_json()
        if self.private is None:
            return document
        payload, protected = map(
            signing.to_base64url, (canonical_json(document), self._protected)
        )
        signature = self._key.sign(f"{protected}.{payload}".encode())
        parts = {"payload": payload, "protected": protected}
        return parts | {"signature": signing.to_base64url(signature)}

    @cached_property
    def _protected(self) -> bytes:
        return canonical_json(self.header)

    @cached_property
    def _key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(self.private or ""))


def _vouched(public: bytes, task: str) -> bytes:
    return _VOUCHED + bytes.fromhex(task) + public


def read_receipt(data: bytes) -> Receipt:
    """Return the receipt in ``data``, signed or not.

    UserError: another form, a leaf that is not that of its salt and envelope, or a
    signature that is wrong. Whose it is, is for the caller to judge.
    """
    value, signer, words = parse_json(data, LARGEST), None, "not a receipt: "
    if isinstance(value, dict) and "protected" in value:
        parts = signing.parse_signature(data, LARGEST)
        raw = parse_json(parts.protected, LARGEST)
        header = read_form(_ReceiptHeader, raw, words)
        value = parse_json(parts.payload, LARGEST)
        signer = _signer(parts, header, read_form(_ReceiptForm, value, words).task)
    form = read_form(_ReceiptForm, value, words)
    receipt = Receipt(form.task, form.epsilon, form.salt, form.envelope, signer)
    if form.leaf != receipt.leaf:
        raise UserError("its leaf is not that of its salt and its envelope.")
    return receipt


def _signer(parts: signing.SignatureParts, header: _ReceiptHeader, task: str) -> str:
    """Return the fingerprint of the server whose round signed; else a UserError."""
    public, by = signing.from_base64url(header.x), signing.from_base64url(header.by.x)
    voucher = signing.from_base64url(header.by.signature)
    try:
        for x, signature, text in (
            (by, voucher, _vouched(public, task)),
            (public, parts.signature, parts.signed),
        ):
            signing.refuse_weak_key(x)
            Ed25519PublicKey.from_public_bytes(x).verify(signature, text)
    except (InvalidSignature, ValueError):
        raise UserError("its signature is wrong: something was altered.") from None
    return signing.key_fingerprint(by)
