"""Sealed envelopes: closed to a server's key, so that the carrier learns sizes only.

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

from curvote import jws
from curvote.errors import UserError
from curvote.strict_json import canonical, parse, said

LARGEST: Final = 2**20  # bytes: ten thousand numbers fit, sealed or not
INFO: Final = b"curvote sealed envelope"
_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


class _Sealed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    sealed: str
    to: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def new_key() -> str:
    """Return a new private key, 64 hex digits, from the system's randomness."""
    return X25519PrivateKey.generate().private_bytes_raw().hex()


def public(private: str) -> str:
    """Return the public half of a private key: 64 hex digits, as of ``seal_to``."""
    return _private(private).public_key().public_bytes_raw().hex()


def closed(envelope: bytes, seal_to: str) -> bytes:
    """Return the envelope sealed to a public key: one canonical line of JSON.

    UserError: nothing can be sealed to this key.
    """
    try:
        key = X25519PublicKey.from_public_bytes(bytes.fromhex(seal_to))
        octets = _SUITE.encrypt(envelope, key, info=INFO)
    except ValueError:
        raise UserError("the server's seal_to is no X25519 key.") from None
    return _line(jws.encode(octets), seal_to)


def is_sealed(data: bytes) -> bool:
    """Say whether ``data`` looks like a sealed envelope; it may still be refused."""
    return data.startswith(b'{"sealed":')


def opened(data: bytes, private_of: Callable[[str], str | None]) -> tuple[str, bytes]:
    """Return the public key that ``data`` was sealed to, and the envelope in it.

    ``private_of`` returns the private key of a public one, None for an unknown one.
    UserError: another form than that of `closed`, an unknown key, any other content
    than what was sealed.
    """
    try:
        found = _Sealed.model_validate(parse(data, LARGEST))
    except ValidationError as error:
        raise UserError(f"not a sealed envelope: {said(error)}.") from None
    octets = jws.decode(found.sealed)
    if _line(found.sealed, found.to) != data:
        raise UserError("not written in the one canonical way: sorted, no spaces, LF.")
    private = private_of(found.to)
    if private is None:
        raise UserError(
            f"sealed to {found.to[:12]}, which is no key of an open round here."
        )
    try:
        return found.to, _SUITE.decrypt(octets, _private(private), info=INFO)
    except (InvalidTag, ValueError):
        raise UserError(
            "the sealed part was altered, or made for another key."
        ) from None


def _line(sealed: str, to: str) -> bytes:
    return canonical({"sealed": sealed, "to": to}) + b"\n"


def _private(text: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(text))
