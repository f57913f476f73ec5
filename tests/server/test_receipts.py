"""Receipts: what was counted can be shown by who sent it, and by nobody else."""

import hashlib
import hmac
import itertools
import json
import random
import re
import sqlite3
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from curvote.base.errors import UserError
from curvote.cli.commands import client as client_cli
from curvote.cli.commands import intake as intake_cli
from curvote.client.receipts import verify_receipt
from curvote.intake.box import Intake
from curvote.messages.message import parse_messages
from curvote.report.certificate.document import sign_certificate, task_text
from curvote.wire.envelope import Invitation, seal_message
from curvote.wire.merkle import (
    MerkleTree,
    check_proof,
    leaves_document,
    path_root,
    proof_document,
)
from curvote.wire.receipt import ReceiptKey, envelope_leaf, read_receipt
from curvote.wire.signing import ServerKey, to_base64url
from curvote.wire.strict_json import canonical_json
from tests.certificate import by_hand
from tests.envelope_service import LINES, NAME, answered, invite, project, serving
from tests.rounds import REPORTS, payload, signed
from tests.vectors.envelope import KEY

N: Final = 1000
SALT: Final = "5a" * 32


def given_key() -> ReceiptKey:
    """Return a new key of a round of reports."""
    return ReceiptKey.of_round(KEY, REPORTS.digest())


def line(receipt: Any) -> bytes:
    """Return a receipt as it is kept."""
    return canonical_json(receipt) + b"\n"


def by_definition(leaves: list[bytes]) -> bytes:
    """Return the root as the specification words it, from the largest tree down."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    half = 1
    while 2 * half < len(leaves):
        half *= 2
    left, right = by_definition(leaves[:half]), by_definition(leaves[half:])
    return hashlib.sha256(b"\x01" + left + right).digest()


@pytest.mark.parametrize("n", [*range(18), 100, 1023])
def test_a_tree_is_the_one_of_rfc_6962_and_each_path_leads_to_its_root(n: int) -> None:
    """In whatever order the leaves come; a leaf that is not there has no path."""
    leaves = [random.Random(k).randbytes(32) for k in range(n)]
    tree = MerkleTree(leaves)
    assert tree.root == by_definition(sorted(leaves)) == MerkleTree(leaves[::-1]).root
    for leaf in leaves:
        assert path_root(leaf, tree.path(leaf)) == tree.root
    with pytest.raises(UserError, match="no leaf"):
        tree.path(bytes(32))


def test_an_inner_node_passes_for_no_leaf() -> None:
    """The two halves of a node are no leaf of a shorter tree, as prefixes differ."""
    tree = MerkleTree([bytes([k]) * 32 for k in range(4)])
    (_, beside), (_, above) = tree.path(bytes(32))
    mine = hashlib.sha256(b"\x00" + bytes(32)).digest()
    assert path_root(mine + beside, [("right", above)]) != tree.root


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, ...]]:
    """A round of 1,000 over HTTP, closed: the service, envelopes, receipts, leaves."""
    place = project(tmp_path_factory.mktemp("receipts") / "p")
    invited = invite(place.intake, N, receipts=given_key())
    sent = answered(invited)
    with serving(place) as service:
        told = service.send(b"".join(sent[:-1]), LINES | {"Curvote-Salt": SALT}).lines
        one = service.send(sent[-1], headers(SALT))
        assert (one.status, {each["status"] for each in told}) == (201, {201})
        with Intake(place.intake) as intake:
            intake.close("one-1")
            leaves = leaves_document(
                MerkleTree(intake.leaves("one-1")), REPORTS.digest()
            )
            (root,) = intake.roots(NAME)
        assert root == (REPORTS.digest(), leaves["root"], N)
        words = ["proofs", NAME, "--project", str(place.root)]
        out = CliRunner().invoke(
            intake_cli.app, [*words, "--out", str(place.root / "l")]
        )
        (written,) = (place.root / "l").glob("*.json")
        assert json.loads(written.read_text()) == leaves
        assert f"root {leaves['root']} of 1,000" in out.stdout
        receipts = [line(each["receipt"]) for each in [*told, one.json]]
        yield service, sent, receipts, leaves


def headers(salt: str) -> dict[str, str]:
    """Return what a client says beside one envelope."""
    return {"Content-Type": "application/json", "Curvote-Salt": salt}


def test_every_receipt_of_a_round_verifies(counted: tuple[Any, ...]) -> None:
    """Signed for the server, of its envelope; by all leaves, and by its path."""
    service, sent, receipts, leaves = counted
    text, task = canonical_json(leaves), signed(REPORTS)
    for place, (envelope, data) in enumerate(zip(sent, receipts, strict=True)):
        receipt = read_receipt(data)
        assert receipt.signer == KEY.fingerprint
        assert receipt.envelope == hashlib.sha256(envelope).hexdigest()
        assert (receipt.task, receipt.epsilon) == (REPORTS.digest(), REPORTS.epsilon)
        if place % 10 == 0:
            proved = verify_receipt(receipt, text, [(leaves["root"], None)], task=task)
            assert [proved[k] for k in ("count", "root_known")] == [N, True]
            assert proved["once"]
        if place % 50 == 0:
            proof = service.ask("GET", f"/v1/receipts/{receipt.leaf}").body
            proved = verify_receipt(receipt, proof, [(leaves["root"], None)])
            assert (proved["count"], proved["once"]) == (N, False)
    tree = MerkleTree(map(bytes.fromhex, leaves["leaves"]))
    assert {read_receipt(data).leaf for data in receipts} == set(leaves["leaves"])
    for data in receipts:
        receipt = read_receipt(data)
        one = proof_document(tree, receipt.task, bytes.fromhex(receipt.leaf))
        assert check_proof(one, receipt.task, receipt.leaf)[0] == leaves["root"]
    assert service.ask("GET", f"/v1/receipts/{'0' * 64}").status == 404


def forged(receipts: list[bytes]) -> Iterator[bytes]:
    """Yield receipts that nobody was given, each from a true one."""
    draw = random.Random(3)
    for data in itertools.cycle(receipts):
        kind, true = draw.randrange(6), read_receipt(data)
        plain = true.to_json()
        if kind == 0:  # one character of the signed line
            at = draw.randrange(len(data))
            other = bytes([draw.choice(b"AZaz09-_")])
            if data[at : at + 1] != other:
                yield data[:at] + other + data[at + 1 :]
        elif kind == 1:  # another envelope, under its own leaf
            yield line(plain | {"envelope": draw.randbytes(32).hex()})
        elif kind == 2:  # another envelope, under a leaf of its own
            salt, envelope = draw.randbytes(32), draw.randbytes(32)
            leaf = hashlib.sha256(salt + envelope).hexdigest()
            more = {"salt": salt.hex(), "envelope": envelope.hex(), "leaf": leaf}
            yield line(plain | more)
        elif kind == 3:  # somebody else's leaf
            yield line(plain | {"leaf": read_receipt(draw.choice(receipts)).leaf[::-1]})
        elif kind == 4:  # another task
            yield line(plain | {"task": draw.randbytes(32).hex()})
        else:  # less epsilon, under the signature of the true one
            value = json.loads(data)
            changed = canonical_json(plain | {"epsilon": true.epsilon / 2})
            yield line(value | {"payload": to_base64url(changed)})


def test_no_forged_receipt_verifies(counted: tuple[Any, ...]) -> None:
    """A thousand, of six kinds, none of which any tree or signature bears out."""
    *_, receipts, leaves = counted
    text, refused = canonical_json(leaves), 0
    for data in itertools.islice(forged(receipts), N):
        with pytest.raises(UserError):
            verify_receipt(read_receipt(data), text, [(leaves["root"], None)])
        refused += 1
    assert refused == N


def test_a_certificate_says_which_root_is_right(
    counted: tuple[Any, ...], tmp_path: Path
) -> None:
    """One that holds, of the receipt's own server, names the root."""
    *_, receipts, leaves = counted
    (tmp_path / "r").write_bytes(receipts[7])
    (tmp_path / "l").write_bytes(canonical_json(leaves))

    def verified(root: str, key: ServerKey = KEY) -> str:
        epsilon = str(Fraction(REPORTS.epsilon))
        asked = {"text": task_text(REPORTS), "digest": REPORTS.digest()}
        tree = {"root": root, "count": N, "why": None, "leaves": None}
        laws = [by_hand.law("binary", Fraction(2), keep="2/3", near=1, far=1)]
        message = by_hand.message(laws, epsilon, N, task=asked, envelopes=tree)
        spent = {"people": N, "mean": epsilon, "largest": epsilon, "delta": "0"}
        people = {"linked": False, "groups": [{"people": N, "sends": [1]}]}
        people |= {"spent": spent, "cap": None, "total": None}
        certificate = by_hand.certificate([message], people)
        (tmp_path / "c").write_text(sign_certificate(certificate, key.sign_octets))
        files = [str(tmp_path / name) for name in "rlc"]
        words = ["verify", files[0], "--leaves", files[1], "--certificate", files[2]]
        done = CliRunner().invoke(client_cli.app, words)
        return done.stdout or str(done.exception)

    assert "(as you got it)" in verified(leaves["root"])
    assert "showed another tree" in verified("ab" * 32)
    stranger = ServerKey(Ed25519PrivateKey.generate())
    assert "signed by another" in verified(leaves["root"], stranger)
    (tmp_path / "r").write_bytes(line(read_receipt(receipts[7]).to_json()))
    assert "not signed" in verified(leaves["root"], stranger)


def test_dropped_and_doubled_envelopes_are_noticed(
    counted: tuple[Any, ...], tmp_path: Path
) -> None:
    """By its sender, whatever root the server then shows, and by the server."""
    *_, receipts, leaves = counted
    receipt, names = read_receipt(receipts[7]), leaves["leaves"]

    def shown(changed: list[str]) -> bytes:
        tree = MerkleTree(map(bytes.fromhex, changed))
        document = leaves_document(tree, receipt.task)
        return canonical_json(document)

    with pytest.raises(UserError, match="dropped"):
        verify_receipt(receipt, shown([n for n in names if n != receipt.leaf]))
    with pytest.raises(UserError, match="twice"):
        verify_receipt(receipt, shown([*names, names[3]]))
    with pytest.raises(UserError, match="another tree"):
        verify_receipt(receipt, shown([*names[1:], "f" * 64]), [(leaves["root"], None)])
    for table, column in (("leaves", "leaf"), ("messages", "row")):
        path = tmp_path / f"{table}.sqlite"
        invited = invite(path, 4, receipts=given_key())
        with Intake(path) as intake:
            assert intake.take_batch(answered(invited), parse_messages) == [None] * 4
            intake.close("one-1")
            assert intake.roots(NAME)[0][2] == 4
        db = sqlite3.connect(path)
        first = f"(SELECT min({column}) FROM {table})"
        db.execute(f"DELETE FROM {table} WHERE {column} = {first}")
        db.commit()
        db.close()
        with Intake(path) as intake, pytest.raises(UserError, match="envelopes"):
            intake.roots(NAME)


def test_the_same_bytes_have_one_receipt_and_a_stranger_has_none(
    counted: tuple[Any, ...],
) -> None:
    """After the close too, unsigned then; a copy of an envelope is not its salt."""
    service, sent, receipts, _ = counted
    again = service.send(sent[5], headers(SALT))
    assert again.status == 200
    assert again.json["receipt"] == read_receipt(receipts[5]).to_json()
    for told in (service.send(sent[5], headers("00" * 32)), service.send(sent[5])):
        assert told.status == 200
        assert "receipt" not in told.json
    assert service.send(sent[5], headers("5A" * 32)).status == 400


def pairs(path: Path) -> list[bytes]:
    """Return every envelope that an invitation and a message of a file could make."""
    db = sqlite3.connect(path)
    invited = db.execute("SELECT id, key FROM invitations").fetchall()
    kept = [json.loads(text) for (text,) in db.execute("SELECT payload FROM messages")]
    db.close()
    digest, asks = REPORTS.digest(), REPORTS.asks
    issued = [Invitation(name, key, digest, asks) for name, key in invited]
    return [seal_message(one, message) for one in issued for message in kept]


def linked(path: Path) -> int:
    """Return how many messages whoever takes the disk ties to their invitations.

    It tries whatever 32 bytes stand in the file as the salt, or the key of one.
    """
    keys = {bytes.fromhex(k) for k in re.findall("[0-9a-f]{64}", _texts(path))}
    db = sqlite3.connect(path)
    leaves = {leaf for (leaf,) in db.execute("SELECT leaf FROM leaves")}
    db.close()
    found = 0
    for data in pairs(path):
        digest = hashlib.sha256(data).digest()
        salts = [bytes(32), b"", *keys]
        salts += [hmac.digest(key, digest, "sha256") for key in keys]
        found += any(hashlib.sha256(s + digest).digest() in leaves for s in salts)
    return found


def _texts(path: Path) -> str:
    db = sqlite3.connect(path)
    words = db.execute("SELECT receipts, seal FROM rounds").fetchall()
    words += db.execute("SELECT id, key FROM invitations").fetchall()
    db.close()
    return " ".join(str(word) for row in words for word in row)


@pytest.mark.parametrize("key_on_disk", [False, True])
def test_the_disk_of_an_open_round_ties_no_message_to_an_invitation(
    tmp_path: Path, key_on_disk: bool
) -> None:
    """Nor after the close. A salt by a key of the file would tie all of them."""
    path, key = tmp_path / "intake.sqlite", given_key()
    invited = invite(path, 6, receipts=key)
    sent = [seal_message(i, payload(REPORTS, i, k)) for k, i in enumerate(invited)]
    secret = bytes.fromhex(str(key.private))
    salts = [hmac.digest(secret, hashlib.sha256(d).digest(), "sha256") for d in sent]
    with Intake(path) as intake:
        assert not any(
            intake.take_batch(sent, parse_messages, salts if key_on_disk else None)
        )
    assert set(sent) < set(pairs(path))  # an envelope is no secret of its round's file
    assert linked(path) == (6 if key_on_disk else 0)
    with Intake(path) as intake:
        intake.close("one-1")
    assert linked(path) == 0


def test_leaves_say_no_order_of_arrival(tmp_path: Path) -> None:
    """Two orders leave the same rows; without a salt it is drawn and forgotten."""
    empty, kept = tmp_path / "empty.sqlite", []
    sent = answered(invite(empty, 30, receipts=given_key()))
    for name, order in (("a", sent), ("b", sent[::-1])):
        path = tmp_path / f"{name}.sqlite"
        path.write_bytes(empty.read_bytes())
        with Intake(path) as intake:
            for data in order:
                intake.take_batch([data], parse_messages, [b"s" * 32])
        db = sqlite3.connect(path)
        kept.append(db.execute("SELECT leaf FROM leaves").fetchall())
        db.close()
    assert kept[0] == kept[1] == sorted(kept[0])
    with Intake(empty) as intake:
        intake.take_batch(sent[:1], parse_messages)
        assert intake.receipts(sent[:1], [b"s" * 32]) == [None]
        intake.close("one-1")
        assert len(intake.leaves("one-1")) == 1


def test_merged_rounds_have_one_tree_and_no_leaf_twice(tmp_path: Path) -> None:
    """A leaf that both have is refused and named; what was left out is in no tree."""
    here, there = tmp_path / "here.sqlite", tmp_path / "there.sqlite"
    invited = invite(here, 8, receipts=given_key())
    there.write_bytes(here.read_bytes())
    sent, salts = answered(invited), [bytes([k]) * 32 for k in range(8)]
    whole = tmp_path / "whole.sqlite"
    whole.write_bytes(here.read_bytes())
    for path, part in ((here, slice(0, 3)), (there, slice(3, 8)), (whole, slice(0, 8))):
        with Intake(path) as intake:
            assert not any(intake.take_batch(sent[part], parse_messages, salts[part]))
    twin = tmp_path / "twin.sqlite"
    twin.write_bytes(there.read_bytes())
    db = sqlite3.connect(twin)
    leaf = envelope_leaf(salts[0], sent[0])
    db.execute(
        "INSERT INTO leaves (round, leaf) SELECT max(round), ? FROM leaves", [leaf]
    )
    db.commit()
    db.close()
    with Intake(here) as intake:
        with pytest.raises(UserError, match=f"leaf {leaf.hex()} was counted here, too"):
            intake.merge(twin)
        assert intake.merge(there) == {"one-1": 5}
        assert intake.merge(there) == {"one-1": 0}
        intake.close("one-1")
        merged = intake.leaves("one-1")
    with Intake(whole) as intake:
        intake.close("one-1")
        assert intake.leaves("one-1") == merged


def test_what_a_close_leaves_out_is_in_no_tree(tmp_path: Path) -> None:
    """A receipt of it is worth nothing, as the message is in no result."""
    path = tmp_path / "intake.sqlite"
    invited = invite(path, 5, receipts=given_key())
    sent, salts = answered(invited), [b"s" * 32] * 5
    with Intake(path) as intake:
        intake.take_batch(sent[:4], parse_messages, salts[:4])
        intake.fold("one-1", 2)
        intake.take_batch(sent[4:], parse_messages, salts[4:])
        late = envelope_leaf(salts[4], sent[4])
        assert intake.receipts(sent[4:], salts[4:]) != [None]
        intake.close("one-1", least=2)
        assert late not in intake.leaves("one-1")
        assert intake.round_of_leaf(late) is None
        assert intake.roots(NAME)[0][2] == 4


def test_a_receipt_is_found_by_its_leaf_however_many_there_are(tmp_path: Path) -> None:
    """No question of the service reads all leaves: a million would stop it."""
    path = tmp_path / "intake.sqlite"
    invite(path, 1, receipts=given_key())
    db = sqlite3.connect(path)
    for where in ("leaf IN (?, ?)", "leaf = ?"):
        words = f"EXPLAIN QUERY PLAN SELECT round FROM leaves WHERE {where}"
        ((*_, plan),) = db.execute(words, [b""] * where.count("?")).fetchall()
        assert plan.startswith("SEARCH")
    db.close()
