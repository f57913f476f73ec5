"""JSON Web Signatures (RFC 7515) in one canonical form, and tasks signed with them.

A library would read far more than the one form that is meant here, and each form more
is a way to write the same message twice: what is left of a JWS without that is base64
and one call of `hmac` or `cryptography`.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from pydantic import Field

from curvote.base.durable import sync_folder
from curvote.base.errors import UserError
from curvote.wire.strict_json import (
    StrictForm,
    canonical_json,
    parse_json,
    read_form,
)


@dataclass(frozen=True)
class SignatureParts:
    """The octets of a JWS: protected header, payload and signature."""

    protected: bytes
    payload: bytes
    signature: bytes

    @property
    def signed(self) -> bytes:
        """The octets that the signature covers (RFC 7515, section 5.1)."""
        parts = to_base64url(self.protected), to_base64url(self.payload)
        return ".".join(parts).encode("ascii")

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


LARGEST: Final = 2**26  # bytes: a thousand candidates of a thousand numbers fit
_TYPE: Final = "curvote-task"
# The prime of edwards25519, and y of its eight points of small order: 0, 1, -1, and the
# roots of d y^4 + 2 y^2 = 1, whose doubles have y = 0.
_P: Final = 2**255 - 19
_EIGHTH: Final = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    "little",
)
_SMALL_ORDER: Final = frozenset({0, 1, _P - 1, _EIGHTH, _P - _EIGHTH})
KEY_LOST_ADVICE: Final = (
    "Put its backup in its place. Only if it is lost for good, delete both files: a new"
    " key is made then, and every client must be told its fingerprint"
)


@dataclass(frozen=True)
class SignedTask:
    """A document with a valid signature, and its signer's fingerprint.

    ``document`` holds ``task`` and ``seal_to``; ``key_fingerprint`` is the SHA-256 of
    the signer's public key, 64 hex digits.
    """

    document: dict[str, Any]
    fingerprint: str


class _TaskDocument(StrictForm):
    task: dict[str, Any]
    seal_to: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None


class _PublicKeyForm(StrictForm):
    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    x: str


class _TaskHeader(StrictForm):
    alg: Literal["EdDSA"]
    jwk: _PublicKeyForm
    typ: Literal["curvote-task"]


class ServerKey:
    """The Ed25519 key that a server signs its tasks with."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self._public = key.public_key().public_bytes_raw()

    @classmethod
    def at(cls, path: Path) -> ServerKey:
        """Return the key in the file ``path``, created if there is none.

        Its fingerprint is remembered beside it: clients have pinned it, and another key
        would be a stranger to them. UserError: a file that others may read, that is
        none, that holds no key or not the one that is remembered, or that is missing.
        """
        fingerprint_path = path.with_suffix(".fingerprint")
        pinned = None
        try:
            if fingerprint_path.exists():
                pinned = fingerprint_path.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            words = f"it cannot be read: {error}"
            raise _key_error(fingerprint_path, words) from None
        if not os.path.lexists(path):
            if pinned is not None:
                words = f"it is missing, {fingerprint_path.name} is there."
                raise _key_error(path, f"{words} {KEY_LOST_ADVICE}")
            new = Ed25519PrivateKey.generate()
            text = new.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            _write_new_file(path, text, 0o600)
        key = cls(_read_key(path))
        if pinned is None:
            _write_new_file(fingerprint_path, f"{key.fingerprint}\n".encode(), 0o644)
        elif pinned != key.fingerprint:
            words = f"it is another key than {fingerprint_path.name} says."
            raise _key_error(path, f"{words} {KEY_LOST_ADVICE}")
        return key

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the public key: what clients pin."""
        return key_fingerprint(self._public)

    def sign_octets(self, purpose: str, octets: bytes) -> tuple[str, str]:
        """Return the public key and the signature of a purpose's line and octets, hex.

        No task is taken for it: what is signed of one holds neither space nor line end.
        """
        signature = self._key.sign(f"{purpose}\n".encode() + octets)
        return self._public.hex(), signature.hex()

    def sign(self, document: dict[str, Any]) -> bytes:
        """Return the document as the line that is published."""
        header = _task_header(self._public)
        return sign_payload(header, canonical_json(document), self._key.sign)

    def vouch(self, words: bytes) -> tuple[bytes, bytes]:
        """Return the public key, and its signature of words that are no JWS."""
        return self._public, self._key.sign(words)


def key_fingerprint(public: bytes) -> str:
    """Return the SHA-256 of a public key of 32 bytes, 64 hex digits."""
    return hashlib.sha256(public).hexdigest()


def open_signed(data: bytes) -> SignedTask:
    """Return the verified document and its signer's fingerprint.

    UserError: unsigned, altered, or written in any other way than the canonical one.
    Whose key it is, and what the task asks, is for the caller to judge.
    """
    try:
        return _verify_document(data)
    except UserError as error:
        raise UserError(f"not a signed task: {error}") from None


def _verify_document(data: bytes) -> SignedTask:
    parts = parse_signature(data, LARGEST)
    header = read_form(_TaskHeader, parse_json(parts.protected, LARGEST), "header ")
    public = from_base64url(header.jwk.x)
    if canonical_json(_task_header(public)) != parts.protected:
        raise UserError("its header is not written in the one canonical way.")
    refuse_weak_key(public)
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(parts.signature, parts.signed)
    except (InvalidSignature, ValueError):
        raise UserError("its signature is wrong: something was altered.") from None
    document = parse_json(parts.payload, LARGEST)
    read_form(_TaskDocument, document)
    if canonical_json(document) != parts.payload:
        raise UserError("its document is not written in the one canonical way.")
    return SignedTask(document, key_fingerprint(public))


def refuse_weak_key(public: bytes) -> None:
    """Refuse a public key under which anything is signed (UserError)."""
    y = int.from_bytes(public, "little") & ((1 << 255) - 1)
    if y >= _P or y in _SMALL_ORDER:
        raise UserError("its key is none that a server can have: it signs anything.")


def _task_header(public: bytes) -> dict[str, Any]:
    key = {"crv": "Ed25519", "kty": "OKP", "x": to_base64url(public)}
    return {"alg": "EdDSA", "jwk": key, "typ": _TYPE}


def _write_new_file(path: Path, text: bytes, mode: int) -> None:
    """Write a file aside and link it to its name atomically."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
            aside = Path(folder) / path.name
            handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with open(handle, "wb") as stream:  # noqa: PTH123 - a handle has no path
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            try:
                os.link(aside, path)
            except FileExistsError:
                return  # another process was first
        sync_folder(path.parent)
    except OSError as error:
        words = f"it cannot be made: {error.strerror or error}"
        raise _key_error(path, words) from None


def _read_key(path: Path) -> Ed25519PrivateKey:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as stream:  # noqa: PTH123 - a handle has no path
            status = os.fstat(handle)
            text = stream.read(4096) if stat.S_ISREG(status.st_mode) else b""
    except OSError as error:
        words = f"it cannot be read: {error.strerror or error}"
        raise _key_error(path, words) from None
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise _key_error(path, "others may read it; `chmod 600` it if nobody has")
    try:
        key = serialization.load_pem_private_key(text, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise _key_error(path, "it holds no Ed25519 key; put its backup in its place")
    return key


def _key_error(path: Path, words: str) -> UserError:
    return UserError(f"the server's key {path}: {words}. Nothing was signed.")
