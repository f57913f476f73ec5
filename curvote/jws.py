"""Signed bytes: JSON Web Signature (RFC 7515), flattened, in one canonical line.

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
from curvote.strict_json import canonical, parse


@dataclass(frozen=True)
class Parts:
    """The octets of a JWS: its ``protected`` header, its ``payload``, the signature."""

    protected: bytes
    payload: bytes
    signature: bytes

    @property
    def signed(self) -> bytes:
        """The octets that the signature is about (RFC 7515, section 5.1)."""
        return f"{encode(self.protected)}.{encode(self.payload)}".encode("ascii")

    @property
    def line(self) -> bytes:
        """The one way to write them, its line feed included."""
        values = {name: encode(octets) for name, octets in vars(self).items()}
        return canonical(values) + b"\n"


def made(
    header: Mapping[str, Any], payload: bytes, sign: Callable[[bytes], bytes]
) -> bytes:
    """Return the line that says ``payload`` under ``header``, signed by ``sign``."""
    parts = Parts(canonical(dict(header)), payload, b"")
    return Parts(parts.protected, payload, sign(parts.signed)).line


def parts(data: bytes, most: int) -> Parts:
    """Return the parts of the JWS in ``data``; the signature is still to be checked.

    UserError: over ``most`` bytes, or any other bytes than `Parts.line`.
    """
    found = parse(data, most)
    names = ("protected", "payload", "signature")
    texts = [found.get(name) for name in names] if isinstance(found, dict) else []
    octets = [decode(text) for text in texts if isinstance(text, str)]
    if len(octets) != len(names) or len(found) != len(names):
        raise UserError("not signed: it is no object of protected, payload, signature.")
    read = Parts(*octets)
    if read.line != data:
        raise UserError("not written in the one canonical way: sorted, no spaces, LF.")
    return read


def hs256(key: bytes, signed: bytes) -> bytes:
    """Return the code of algorithm HS256 (RFC 7518, section 3.2)."""
    return hmac.digest(key, signed, "sha256")


def encode(octets: bytes) -> str:
    """Return base64url without padding (RFC 7515, section 2)."""
    return urlsafe_b64encode(octets).rstrip(b"=").decode("ascii")


def decode(text: str) -> bytes:
    """Return what `encode` wrote; UserError: anything else, spare bits included."""
    try:
        octets = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except ValueError:
        octets = None
    if octets is None or encode(octets) != text:
        raise UserError("a part of it is no base64url text without padding.")
    return octets
