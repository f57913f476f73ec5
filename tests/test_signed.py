"""Signed tasks: what was asked, by whom, in one form; and the file of the key."""

import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from curvote.base.errors import UserError
from curvote.wire import signing
from curvote.wire.signing import ServerKey, key_fingerprint, open_signed
from curvote.wire.strict_json import canonical_json
from curvote.wire.task import Task
from tests.rounds import PARTS, REPORTS, SERVER, VOTES, signed

DATA = signed(REPORTS)
X = signing.from_base64url(
    json.loads(signing.from_base64url(json.loads(DATA)["protected"]))["jwk"]["x"]
)


def refusal(data: bytes) -> str:
    """Return why a document is not opened."""
    with pytest.raises(UserError, match="not a signed task: ") as caught:
        open_signed(data)
    assert str(caught.value).isprintable()
    return str(caught.value)


def resigned(key: Ed25519PrivateKey, document: bytes, **header: object) -> bytes:
    """Return bytes that whoever has ``key`` signed, whatever they are."""
    x = signing.to_base64url(key.public_key().public_bytes_raw())
    told = {"alg": "EdDSA", "jwk": {"crv": "Ed25519", "kty": "OKP", "x": x}}
    return signing.sign_payload(
        told | {"typ": "curvote-task"} | header, document, key.sign
    )


@pytest.mark.parametrize("seal_to", [None, "ab" * 32])
@pytest.mark.parametrize("task", [REPORTS, VOTES])
def test_a_task_is_opened_as_it_was_signed(task: Task, seal_to: str | None) -> None:
    """Its digest stays, and the fingerprint is that of the key."""
    found = open_signed(signed(task, seal_to))
    assert found.fingerprint == SERVER.fingerprint == hashlib.sha256(X).hexdigest()
    assert Task.from_json(found.document["task"]).digest() == task.digest()
    assert found.document["seal_to"] == seal_to
    assert signed(task, seal_to) == signed(task, seal_to)


def test_who_replaces_the_task_on_the_way_is_not_the_server() -> None:
    """Another key's signature is good, and shows another fingerprint."""
    other = open_signed(
        resigned(Ed25519PrivateKey.generate(), canonical_json(DOCUMENT))
    )
    assert other.document == DOCUMENT
    assert other.fingerprint != SERVER.fingerprint


DOCUMENT = {"task": REPORTS.to_json(), "seal_to": None}


def changed(**parts: bytes) -> bytes:
    """Return the line with other octets in some parts."""
    texts = {name: signing.to_base64url(octets) for name, octets in parts.items()}
    return canonical_json(json.loads(DATA) | texts) + b"\n"


def test_whatever_is_altered_is_refused() -> None:
    """Every byte of task, key and signature; a budget that was raised on the way."""
    dearer = canonical_json(DOCUMENT | {"task": REPORTS.to_json() | {"epsilon": 50.0}})
    assert "altered" in refusal(changed(payload=dearer))
    other = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    header = signing.from_base64url(json.loads(DATA)["protected"])
    stolen = header.replace(
        signing.to_base64url(X).encode(), signing.to_base64url(other).encode()
    )
    assert "altered" in refusal(changed(protected=stolen))
    for position in range(0, len(DATA), 7):
        refusal(DATA[:position] + bytes([DATA[position] ^ 1]) + DATA[position + 1 :])
    assert "altered" in refusal(changed(signature=bytes(64)))
    assert "altered" in refusal(changed(signature=b""))


def test_unsigned_is_refused() -> None:
    """A bare task, as servers published them before; no algorithm; HS256 by the key."""
    assert "not signed" in refusal(json.dumps(REPORTS.to_json()).encode())
    for text in (b"", b"[]", b"{}", b"null", b"\xff", b'{"payload":1}'):
        refusal(text)
    key = {"crv": "Ed25519", "kty": "OKP", "x": signing.to_base64url(X)}
    for odd in ("none", "HS256", "Ed25519", None):
        head = {"alg": odd, "jwk": key, "typ": "curvote-task"}
        for sign in (lambda _: b"", lambda text: signing.hmac_sha256(X, text)):
            assert "header alg" in refusal(
                signing.sign_payload(head, canonical_json(DOCUMENT), sign)
            )


KEY = Ed25519PrivateKey.generate()


@pytest.mark.parametrize(
    "document",
    [
        DOCUMENT | {"more": 1},
        {"task": DOCUMENT["task"]},
        DOCUMENT | {"task": "x"},
        DOCUMENT | {"seal_to": "AB" * 32},
        DOCUMENT | {"seal_to": "ab"},
        [],
        {"task": {}, "seal_to": None, "\n": 1},
    ],
)
def test_a_document_has_one_form(document: object) -> None:
    """Even one that its server signed."""
    refusal(resigned(KEY, canonical_json(document)))


def test_a_document_is_written_in_one_way() -> None:
    """So are header and line: a signature is under one text only."""
    text = canonical_json(DOCUMENT)
    assert open_signed(resigned(KEY, text)).document == DOCUMENT
    for other in (
        text + b" ",
        text.replace(b",", b", "),
        text.replace(b"1.0", b"1.00", 1),
        text.replace(b'"seal_to":null', b'"seal_to":null,"seal_to":null'),
        text.replace(b'"seal_to":null', b'"\\u0073eal_to":null'),
    ):
        assert other != text
        refusal(resigned(KEY, other))
    for header in ({"typ": "x"}, {"crit": []}, {"b64": False}, {"kid": "1"}):
        refusal(resigned(KEY, text, **header))
    for line in (DATA[:-1], DATA + b"\n", DATA.replace(b",", b", ", 1), b" " + DATA):
        refusal(line)
    found = json.loads(DATA)
    refusal(canonical_json(found | {"header": {}}) + b"\n")
    backwards = {name: found[name] for name in sorted(PARTS, reverse=True)}
    refusal(json.dumps(backwards, separators=(",", ":")).encode() + b"\n")


@pytest.mark.parametrize("odd", ["1e400", "9" * 400, "[" * 9000, '"\\ud800"', "NaN"])
def test_odd_values_are_refused(odd: str) -> None:
    """By the same kind of error as anything else, though the server signed them."""
    text = canonical_json(DOCUMENT).replace(
        b'"epsilon":1.0', b'"epsilon":' + odd.encode()
    )
    refusal(resigned(KEY, text))


@given(data=st.binary(), start=st.sampled_from([b"", DATA[:40], DATA[:-90]]))
def test_no_bytes_can_do_more_than_be_refused(data: bytes, start: bytes) -> None:
    """Never another exception."""
    refusal(start + data)


# --------------------------------------------------------------------------- the key
def test_the_key_is_made_once(tmp_path: Path) -> None:
    """For its owner only, whoever comes at the same time; nothing else is left."""
    path = tmp_path / "state" / "server.key"
    with ThreadPoolExecutor(8) as pool:
        names = {key.fingerprint for key in pool.map(ServerKey.at, [path] * 16)}
    assert names == {ServerKey.at(path).fingerprint}
    assert path.stat().st_mode & 0o777 == 0o600
    kept = path.with_suffix(".fingerprint")
    assert {*path.parent.iterdir()} == {path, kept}
    assert kept.read_text() == f"{ServerKey.at(path).fingerprint}\n"
    (name,) = names
    found = open_signed(ServerKey.at(path).sign(DOCUMENT))
    assert found.fingerprint == name


def _other_kind(path: Path) -> None:
    key = generate_private_key(SECP256R1())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(text)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.chmod(0o640),
        lambda path: path.chmod(0o604),
        lambda path: path.chmod(0o602),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-40]),
        lambda path: path.write_bytes(b"\xff" * 10_000),
        _other_kind,
        _link,
        _fifo,
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: (path.unlink(), path.symlink_to("nowhere")),
    ],
)
def test_a_key_that_others_know_or_that_is_none_signs_nothing(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    """It is refused and stays as it is: a new one would be a stranger to clients."""
    path = tmp_path / "server.key"
    ServerKey.at(path)
    damage(path)
    with pytest.raises(UserError, match=r"the server's key .*Nothing was signed"):
        ServerKey.at(path)
    assert os.path.lexists(path)


def test_another_key_is_not_made_while_clients_know_one(tmp_path: Path) -> None:
    """Who deletes or exchanges the key does not make every client doubt the server."""
    path, other = tmp_path / "server.key", tmp_path / "other.key"
    name = ServerKey.at(path).fingerprint
    assert ServerKey.at(other).fingerprint != name
    for damage in (path.unlink, lambda: other.rename(path)):
        damage()
        with pytest.raises(UserError, match=r"Put its backup .*delete both files"):
            ServerKey.at(path)
    path.unlink()
    path.with_suffix(".fingerprint").unlink()
    assert ServerKey.at(path).fingerprint != name


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """As any other trouble with a file."""
    (tmp_path / "state").write_text("a file")
    with pytest.raises(UserError, match="it cannot be made"):
        ServerKey.at(tmp_path / "state" / "server.key")


def test_a_fingerprint_is_that_of_the_32_bytes() -> None:
    """So that any tool can compute it."""
    assert key_fingerprint(X) == hashlib.sha256(X).hexdigest() == SERVER.fingerprint


P = 2**255 - 19
EIGHTH = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
WEAK = {
    "order 1": 1,
    "order 2": P - 1,
    "order 4": 0,
    "order 8": int.from_bytes(bytes.fromhex(EIGHTH), "little"),
    "order 8, the other": P - int.from_bytes(bytes.fromhex(EIGHTH), "little"),
    "not reduced, order 4": P,
    "not reduced, order 1": P + 1,
    "not reduced": P + 5,
}


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("name", WEAK)
def test_a_key_that_signs_anything_is_refused(name: str, sign: int) -> None:
    """Under the neutral point R = 1, S = 0 is a signature of every document."""
    public = (WEAK[name] | sign << 255).to_bytes(32, "little")
    neutral = (1).to_bytes(32, "little") + bytes(32)
    x = signing.to_base64url(public)
    header = {"alg": "EdDSA", "jwk": {"crv": "Ed25519", "kty": "OKP", "x": x}}
    document = canonical_json({"seal_to": None, "task": REPORTS.to_json()})
    line = signing.sign_payload(
        header | {"typ": "curvote-task"}, document, lambda _: neutral
    )
    assert "it signs anything" in refusal(line)


def test_the_points_of_order_eight_are_those() -> None:
    """D y^4 + 2 y^2 = 1: their doubles have y = 0, whose doubles are of order two."""
    d, y = -121665 * pow(121666, -1, P) % P, WEAK["order 8"]
    assert (d * pow(y, 4, P) + 2 * y * y - 1) % P == 0
