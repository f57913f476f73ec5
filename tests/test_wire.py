"""The wire as docs/envelope.md tells it: published vectors, oracles from the RFCs."""

import base64
import hashlib
import hmac
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from curvote.wire import envelope, signing
from curvote.wire.envelope import Invitation, is_genuine, read_envelope, seal_message
from curvote.wire.signing import ServerKey
from curvote.wire.task import Task
from tests.rounds import REPORTS, VOTES
from tests.rounds import signed as published

ROOT = Path(__file__).parents[1]
VECTORS: dict[str, Any] = json.loads((ROOT / "tests/vectors/wire.json").read_text())


# ----------------------------------------------------------------- what was published
def test_the_published_vectors_hold() -> None:
    """Every text is what the keys make of it; a client may be tested against them."""
    given = VECTORS["server"]
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(given["ed25519_private"]))
    server = ServerKey(key)
    assert server.fingerprint == given["fingerprint"]
    assert envelope.public_key(given["x25519_private"]) == given["seal_to"]
    assert server.sign(VECTORS["document"]).decode() == VECTORS["signed_task"]
    found = signing.open_signed(VECTORS["signed_task"].encode())
    assert found == signing.SignedTask(VECTORS["document"], given["fingerprint"])
    assert Task.from_json(found.document["task"]).digest() == VECTORS["task_digest"]
    assert VECTORS["document"]["seal_to"] == given["seal_to"]


@pytest.mark.parametrize("end", ["", "_1"])
def test_the_published_envelopes_are_genuine(end: str) -> None:
    """Of both formats; made again, they are the same bytes."""
    invitation = Invitation.from_json(VECTORS[f"invitation{end}"])
    data = VECTORS[f"envelope{end}"].encode()
    unsealed = replace(invitation, seal_to=None)
    assert seal_message(unsealed, VECTORS["message"]) == data
    found = read_envelope(data)
    assert is_genuine(found, invitation.key)
    assert found.payload == VECTORS["message"]
    assert found.task == VECTORS["task_digest"]


def test_the_published_sealed_envelope_holds_the_open_one() -> None:
    """And its file has the published name."""
    keys = {VECTORS["server"]["seal_to"]: VECTORS["server"]["x25519_private"]}
    to, inner = envelope.open_sealed(VECTORS["sealed_envelope"].encode(), keys.get)
    assert inner.decode() == VECTORS["envelope"]
    assert to in keys
    invitation = Invitation.from_json(VECTORS["invitation"])
    assert invitation.file_name == VECTORS["file_name"]


def test_a_client_needs_nothing_but_a_standard_library() -> None:
    """The published envelope, written by five lines that know no curvote."""
    invitation, text = VECTORS["invitation"], VECTORS["payload"]
    head = {"alg": "HS256", "kid": invitation["id"], "typ": "curvote-envelope"}
    words = json.dumps(head, separators=(",", ":")), text
    parts = [base64.urlsafe_b64encode(w.encode()).decode().rstrip("=") for w in words]
    code = hmac.new(
        bytes.fromhex(invitation["key"]), ".".join(parts).encode(), "sha256"
    )
    signature = base64.urlsafe_b64encode(code.digest()).decode().rstrip("=")
    line = {"payload": parts[1], "protected": parts[0], "signature": signature}
    assert json.dumps(line, separators=(",", ":")) + "\n" == VECTORS["envelope"]


# --------------------------------------------------------------------------- oracles
def test_hs256_is_that_of_the_rfc() -> None:
    """RFC 7515, appendix A.1: its key, header, claims and signature."""
    key = (
        "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0i"
        "PS4hcgUuTwjAzZr1Z9CAow"
    )
    protected = b'{"typ":"JWT",\r\n "alg":"HS256"}'
    claims = (
        b'{"iss":"joe",\r\n "exp":1300819380,\r\n "http://example.com/is_root":true}'
    )
    parts = signing.SignatureParts(protected, claims, b"")
    assert parts.signed == (
        b"eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9"
        b".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt"
        b"cGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    )
    code = signing.hmac_sha256(signing.from_base64url(key), parts.signed)
    assert signing.to_base64url(code) == "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"


def test_eddsa_is_that_of_the_rfc() -> None:
    """RFC 8037, appendix A.4: its key, header, payload and signature."""
    key = Ed25519PrivateKey.from_private_bytes(
        signing.from_base64url("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
    )
    line = signing.sign_payload(
        {"alg": "EdDSA"}, b"Example of Ed25519 signing", key.sign
    )
    assert json.loads(line) == {
        "protected": "eyJhbGciOiJFZERTQSJ9",
        "payload": "RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
        "signature": "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylG"
        "jg5BhVsPt9g7sVvpAr_MuM0KAg",
    }


def _expand(secret: bytes, suite: bytes, label: bytes, info: bytes, size: int) -> bytes:
    """Return LabeledExpand of RFC 9180, section 4, of at most 32 bytes."""
    text = size.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info + b"\x01"
    return hmac.digest(secret, text, "sha256")[:size]


def _extract(salt: bytes, suite: bytes, label: bytes, ikm: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + ikm, "sha256")


def hpke(private: bytes, octets: bytes, info: bytes, aad: bytes) -> bytes:
    """Open what was sealed, by RFC 9180 in the words of its sections 4.1 and 5.1."""
    enc, sealed_text = octets[:32], octets[32:]
    key = X25519PrivateKey.from_private_bytes(private)
    shared = key.exchange(X25519PublicKey.from_public_bytes(enc))
    kem, suite = b"KEM\x00\x20", b"HPKE\x00\x20\x00\x01\x00\x03"
    context = enc + key.public_key().public_bytes_raw()
    prk = _extract(b"", kem, b"eae_prk", shared)
    secret = _expand(prk, kem, b"shared_secret", context, 32)
    schedule = b"\x00" + _extract(b"", suite, b"psk_id_hash", b"")
    schedule += _extract(b"", suite, b"info_hash", info)
    secret = _extract(secret, suite, b"secret", b"")
    aead = ChaCha20Poly1305(_expand(secret, suite, b"key", schedule, 32))
    nonce = _expand(secret, suite, b"base_nonce", schedule, 12)
    return aead.decrypt(nonce, sealed_text, aad)


def test_sealing_is_hpke() -> None:
    """RFC 9180, appendix A.2.1, opens here; and here opens what curvote seals."""
    private = "8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb"
    enc = "1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a"
    text = (
        "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db"
        "21993c62ce81883d2dd1b51a28"
    )
    octets = bytes.fromhex(enc + text)
    told = hpke(bytes.fromhex(private), octets, b"Ode on a Grecian Urn", b"Count-0")
    assert told == b"Beauty is truth, truth beauty"
    mine = envelope.new_private_key()
    line = envelope.seal_to_key(b"an envelope\n", envelope.public_key(mine))
    octets = signing.from_base64url(json.loads(line)["sealed"])
    found = hpke(bytes.fromhex(mine), octets, b"curvote sealed envelope", b"")
    assert found == b"an envelope\n"


def test_the_digest_needs_no_float_text() -> None:
    """The task's text in the document, spaced: what the page says, in Python."""
    for task in (REPORTS, VOTES):
        parts = json.loads(published(task))
        text = signing.from_base64url(parts["payload"]).decode()
        words = text[text.index('"task":') + 7 : -1]
        spaced = re.sub(r'("(?:[^"\\]|\\.)*")|([,:])', r"\1\2 ", words)
        spaced = re.sub(r'("(?:[^"\\]|\\.)*") ', r"\1", spaced)
        assert hashlib.sha256(spaced.encode()).hexdigest() == task.digest()
