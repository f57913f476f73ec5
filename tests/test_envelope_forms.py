"""An envelope has one form: whoever writes it differently has written none."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvote.base.errors import UserError
from curvote.messages.message import parse_message
from curvote.wire import signing
from curvote.wire.envelope import is_genuine, read_envelope
from curvote.wire.strict_json import canonical_json
from tests.rounds import REPORTS, edited
from tests.test_envelope import INVITATION, OLD, SEALED, SEALED_1, refusal


def test_numbers_may_be_written_in_any_way() -> None:
    """What is sealed are bytes: a client needs no copy of Python's float text.

    Kept is one form of the message, which does not tell who wrote it.
    """
    text = b'{ "task": "%s", "message": {"z": [2, 5e-1, 0.50, -0.0], "label":1}}'
    header = {"alg": "HS256", "kid": INVITATION.id, "typ": "curvote-envelope"}
    key = bytes.fromhex(INVITATION.key)
    octets = text % INVITATION.task.encode()
    found = read_envelope(
        signing.sign_payload(
            header, octets, lambda signed: signing.hmac_sha256(key, signed)
        )
    )
    assert is_genuine(found, INVITATION.key)
    kept = parse_message(REPORTS, None, found.payload)
    assert canonical_json(kept) == b'{"label":1,"z":[2.0,0.5,0.5,0.0]}'


def rewritten(data: bytes) -> Iterator[bytes]:
    """Yield other bytes that say the same to a reader who is not strict."""
    yield from (data[:-1], data + b"\n", b" " + data, data.replace(b",", b", ", 1))
    yield data[:-1] + b"\r\n"
    yield b"\xef\xbb\xbf" + data
    found = json.loads(data)
    yield json.dumps(dict(reversed(found.items())), separators=(",", ":")).encode()
    yield data.replace(b'"', b'"\\u0070', 1) if b'"pay' in data[:5] else data + b" "
    yield data[:-2] + b',"' + [*found][-1].encode() + b'":' + data.split(b":")[-1]


def test_nobody_can_write_an_envelope_in_a_second_way() -> None:
    """Malleability: a copy in other bytes would be neither the same nor another."""
    for data in (SEALED, SEALED_1):
        others = [*rewritten(data)]
        for other in others:
            assert refusal(other)
    ones = [b"true", b"1.0", b"1e0", b'"1"', b"01", b"+1"]
    for one in ones:
        assert refusal(SEALED_1.replace(b'"format":1', b'"format":' + one))
    for zero in (b"-0.0", b"-0", b"0.00", b"0e0"):
        assert refusal(SEALED_1.replace(b",0.0,", b"," + zero + b","))
    assert refusal(SEALED_1.replace(b'"seal":"', b'"seal":"A')[:-2])


def header(**changes: object) -> bytes:
    """Return the envelope with another header."""
    return edited(SEALED, lambda e: e["header"].update(changes))


def test_only_the_one_header_is_read() -> None:
    """No other algorithm, none at all, no extension, no other kind of object."""
    for odd in ("none", "None", "hs256", "HS512", "RS256", "EdDSA", None, 1):
        assert refusal(header(alg=odd))
    assert refusal(header(crit=["exp"]))
    assert refusal(header(typ="curvote-task"))
    assert refusal(header(kid=INVITATION.id.upper()))
    assert refusal(edited(SEALED, lambda e: e["header"].pop("typ")))
    found = json.loads(SEALED)
    text = signing.from_base64url(found["protected"])
    for other in (
        text.replace(b",", b", "),
        text.replace(b"{", b'{"alg":"none",'),
        text + b" ",
        b'{"kid":"%s","alg":"HS256","typ":"curvote-envelope"}' % INVITATION.id.encode(),
    ):
        changed = found | {"protected": signing.to_base64url(other)}
        assert refusal(canonical_json(changed) + b"\n")
    for spare in ("=", "==", "AA", " ", "\n"):
        changed = found | {"signature": found["signature"] + spare}
        assert refusal(canonical_json(changed) + b"\n")
    last = found["signature"][-1]  # 43 characters hold 258 bits: two are spare
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    spare = found["signature"][:-1] + alphabet[alphabet.index(last) + 1]
    assert refusal(canonical_json(found | {"signature": spare}) + b"\n")


@pytest.mark.parametrize("odd", ["1e400", "-1e400", "9" * 400, "-" + "9" * 19, "NaN"])
def test_numbers_that_no_float_holds_are_refused(odd: str) -> None:
    """In what is sealed as well as around it, and never by another error."""
    text = f'{{"message":{{"z":[{odd}],"label":1}},"task":"{INVITATION.task}"}}'
    head = {"alg": "HS256", "kid": INVITATION.id, "typ": "curvote-envelope"}
    assert refusal(signing.sign_payload(head, text.encode(), lambda _: b""))
    assert refusal(SEALED_1.replace(b"0.5", odd.encode()))


@given(
    data=st.one_of(
        st.binary(),
        *(st.binary().map(lambda b, s=s: s[:90] + b) for s in (SEALED, SEALED_1)),
    )
)
def test_no_bytes_can_do_more_than_be_refused(data: bytes) -> None:
    """Anything but an envelope is a UserError, never another exception."""
    with pytest.raises(UserError):
        read_envelope(data)


@pytest.mark.parametrize("bit", [1, 2, 4, 8, 16, 32, 64, 128])
def test_no_bit_can_be_changed(bit: int) -> None:
    """Whatever bit of an envelope of either format: refused, or not genuine."""
    for data, key in ((SEALED, INVITATION.key), (SEALED_1, OLD.key)):
        assert is_genuine(read_envelope(data), key)
        for place in range(len(data)):
            other = data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]
            try:
                assert not is_genuine(read_envelope(other), key)
            except UserError:
                continue
