"""JSON Web Signatures (RFC 7515) in one canonical form, and tasks signed with them.

A library would read far more than the one form that is meant here, and each form more
is a way to write the same message twice: what is left of a JWS without that is base64
and one call of `hmac` or `cryptography`.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from curvote.errors import UserError
from curvote.strict_json import canonical_json, parse_json


@dataclass(frozen=True)
class SignatureParts:
    """The octets of a JWS: protected header, payload and signature."""

    protected: bytes
    payload: bytes
    signature: bytes

    @property
    def signed(self) -> bytes:
        """The octets that the signature covers (RFC 7515, section 5.1)."""
        return f"{to_base64url(self.protected)}.{to_base64url(self.payload)}".encode(
            "ascii"
        )

    @property
    def line(self) -> bytes:
        """The canonical line of the JWS, its line feed included."""
        values = {name: to_base64url(octets) for name, octets in vars(self).items()}
        return canonical_json(values) + b"\n"


def sign_payload(
    header: Mapping[str, Any], payload: bytes, sign: Callable[[bytes], bytes]
) -> bytes:
    """Return the JWS line of ``payload`` under ``header``."""
    unsigned = SignatureParts(canonical_json(dict(header)), payload, b"")
    return SignatureParts(unsigned.protected, payload, sign(unsigned.signed)).line


def parse_signature(data: bytes, max_bytes: int) -> SignatureParts:
    """Return the parts of the JWS in ``data``, its signature unchecked.

    UserError: over ``max_bytes`` bytes, or any other bytes than `SignatureParts.line`.
    """
    value = parse_json(data, max_bytes)
    names = ("protected", "payload", "signature")
    texts = [value.get(name) for name in names] if isinstance(value, dict) else []
    octets = [from_base64url(text) for text in texts if isinstance(text, str)]
    if len(octets) != len(names) or len(value) != len(names):
        raise UserError("not signed: it is no object of protected, payload, signature.")
    parsed = SignatureParts(*octets)
    if parsed.line != data:
        raise UserError("not written in the one canonical way: sorted, no spaces, LF.")
    return parsed


def hmac_sha256(key: bytes, signed: bytes) -> bytes:
    """Return the code of algorithm HS256 (RFC 7518, section 3.2)."""
    return hmac.digest(key, signed, "sha256")


def to_base64url(octets: bytes) -> str:
    """Return base64url without padding (RFC 7515, section 2)."""
    return urlsafe_b64encode(octets).rstrip(b"=").decode("ascii")


def from_base64url(text: str) -> bytes:
    """Return the octets of base64url text; other text is a UserError."""
    try:
        octets = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except ValueError:
        octets = None
    if octets is None or to_base64url(octets) != text:
        raise UserError("a part of it is no base64url text without padding.")
    return octets
