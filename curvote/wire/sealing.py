"""Encryption of envelopes to a server's public key (HPKE, RFC 9180).

Hybrid public key encryption (HPKE, RFC 9180), base mode in one shot: X25519 with
HKDF-SHA256, and ChaCha20-Poly1305. Both public keys enter the key that is derived.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from curvote.base.errors import UserError
from curvote.wire import signing
from curvote.wire.strict_json import canonical_json, describe_errors, parse_json

LARGEST_ENVELOPE: Final = 2**20  # bytes: ten thousand numbers fit, sealed or not
INFO: Final = b"curvote sealed envelope"
_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


class _SealedForm(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

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
    try:
        form = _SealedForm.model_validate(parse_json(data, LARGEST_ENVELOPE))
    except ValidationError as error:
        raise UserError(f"not a sealed envelope: {describe_errors(error)}.") from None
    octets = signing.from_base64url(form.sealed)
    if _sealed_line(form.sealed, form.to) != data:
        raise UserError("not written in the one canonical way: sorted, no spaces, LF.")
    private = find_private(form.to)
    if private is None:
        raise UserError(
            f"sealed to {form.to[:12]}, which is no key of an open round here."
        )
    try:
        return form.to, _SUITE.decrypt(octets, _load_private_key(private), info=INFO)
    except (InvalidTag, ValueError):
        raise UserError(
            "the sealed part was altered, or made for another key."
        ) from None


def _sealed_line(sealed: str, to: str) -> bytes:
    return canonical_json({"sealed": sealed, "to": to}) + b"\n"


def _load_private_key(text: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(text))
