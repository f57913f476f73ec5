"""Sending an envelope: again until it is accepted, and never drawn anew."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from curvote.base.errors import UserError
from curvote.cli.commands import client as cli_client
from curvote.client import sending
from curvote.client.receipts import keep_receipt, salt_beside
from curvote.client.sending import NotSent, send_envelope
from curvote.intake.box import Intake
from curvote.wire.envelope import issue_invitations
from curvote.wire.merkle import MerkleTree, leaves_document
from curvote.wire.receipt import Receipt, ReceiptKey, envelope_salt
from tests.envelope_service import project, serving
from tests.rounds import REPORTS, SERVER, signed


class Fake(HTTPServer):
    """A service that answers as it is told, and remembers what came."""

    def __init__(self, answers: list[tuple[int, dict[str, str], bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers, self.came = answers, [b""][:0]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        server.came.append(self.rfile.read(int(self.headers["Content-Length"])))
        status, headers, body = server.answers.pop(0)
        if not status:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def fake(*answers: tuple[int, dict[str, str], bytes]) -> Iterator[tuple[str, Fake]]:
    """Run a fake service; yield its address and itself."""
    with Fake([*answers]) as server:
        thread = threading.Thread(
            target=server.serve_forever, args=(0.02,), daemon=True
        )
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/round", server
        finally:
            server.shutdown()
            thread.join()


def test_it_asks_again_until_it_is_accepted() -> None:
    """After no answer, a full queue and a drain; the same bytes each time."""
    busy = (429, {"Retry-After": "7"}, b"")
    lost, drains, done = (0, {}, b""), (503, {}, b"x"), (200, {}, b"{}")
    waits: list[float] = []
    with fake(lost, busy, drains, done) as (url, server):
        assert send_envelope(url, b"envelope", sleep=waits.append).outcome == (
            "accepted before"
        )
        assert server.came == [b"envelope"] * 4
    assert waits[1] == 7
    assert all(0 < wait <= 60 for wait in waits)
    with fake((201, {}, b"{}")) as (url, _):
        assert send_envelope(url, b"envelope").outcome == "accepted"


def test_a_refusal_is_final_and_in_plain_words() -> None:
    """Said once, without what a terminal would obey; a redirect is none to follow."""
    text = json.dumps({"title": "round closed\x1b[2J", "detail": "y" * 999}).encode()
    with fake((410, {}, text)) as (url, server):
        with pytest.raises(UserError, match=r"refused .*round closed\?\[2J") as caught:
            send_envelope(url, b"envelope", sleep=None)
        assert len(str(caught.value)) < 600
        assert len(server.came) == 1
    for odd in (b"", b"[]", b"\xff", b'{"name": 3}'):
        refused = pytest.raises(UserError, match="status 302")
        with fake((302, {"Location": "http://x"}, odd)) as (url, _), refused:
            send_envelope(url, b"envelope", sleep=None)


def test_hope_ends_and_the_envelope_waits() -> None:
    """Some tries, then an error that says how to go on; nothing is lost."""
    waits: list[float] = []
    with pytest.raises(NotSent, match="the same command sends it again"):
        send_envelope("http://127.0.0.1:1", b"envelope", sleep=waits.append)
    assert len(waits) == sending.MAX_TRIES - 1
    assert max(waits) <= sending.LONGEST_WAIT


@pytest.mark.parametrize(
    "url",
    [
        *("", "host", "ftp://host", "http://host", "https://", "http://localhost:x"),
        *("https://host/a b", "https://host/\u00e9", "https://a..b/", "https://.host"),
        f"https://{'a' * 64}.org",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """Nor is one on whose way others could read."""
    with pytest.raises(UserError, match=r"no address|not encrypted"):
        send_envelope(url, b"envelope", sleep=None)


def test_an_answer_is_drawn_once_and_sent_as_often_as_it_takes(tmp_path, monkeypatch):
    """First to nobody, then to its service, then again: one envelope, one message."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sending, "MAX_TRIES", 1)
    place = project(tmp_path / "p")
    (invitation,) = issue_invitations(REPORTS, 1)
    with Intake(place.intake) as intake:
        given = {"pipeline": "far", "needed": 1, "invitations": [invitation]}
        key = ReceiptKey.of_round(SERVER, REPORTS.digest())
        intake.open_round("one-1", task=REPORTS, receipts=key, **given)
    (tmp_path / "task.json").write_bytes(signed(REPORTS))
    (tmp_path / "i.json").write_text(json.dumps(invitation.to_json()))
    (tmp_path / "curve.csv").write_text("1\n2\n3\n4\n")
    words = [
        "answer",
        "--yes",
        "--task",
        "task.json",
        "--invitation",
        "i.json",
        "--json",
    ]
    words += ["--curve", "curve.csv", "--label", "yes", "--send"]
    monkeypatch.chdir(tmp_path)

    def run(url: str) -> tuple[int, dict[str, Any]]:
        done = CliRunner().invoke(cli_client.app, [*words, url])
        return done.exit_code, json.loads(done.stdout)

    code, first = run("http://127.0.0.1:1")
    assert (code, first["sent"], first["new"]) == (1, "not yet", True)
    with serving(place) as service:
        told = [run(f"http://127.0.0.1:{service.port}") for _ in range(2)]
    assert [code for code, _ in told] == [0, 0]
    assert [each["sent"] for _, each in told] == ["accepted", "accepted before"]
    assert {(e["new"], e["sha256"]) for _, e in told} == {(False, first["sha256"])}
    with Intake(place.intake) as intake:
        assert intake.round("one-1").accepted == 1
        intake.close("one-1")
        tree = MerkleTree(intake.leaves("one-1"))
    assert len([*(tmp_path / "home").rglob("outbox/*.json")]) == 1
    (receipt,) = {each["receipt"] for _, each in told}
    assert Path(receipt).stat().st_mode & 0o77 == 0
    document = leaves_document(tree, REPORTS.digest())
    (tmp_path / "leaves.json").write_text(json.dumps(document))
    root = tree.root.hex()

    def verify(*more: str) -> tuple[int, Any]:
        words = ["verify", receipt, "--leaves", "leaves.json", "--json", *more]
        done = CliRunner().invoke(cli_client.app, words)
        return done.exit_code, json.loads(done.stdout or "null") or done.exception

    code, proved = verify("--root", root, "--task", "task.json")
    about = {"once": True, "count": 1, "root_known": True}
    about |= {"epsilon": REPORTS.epsilon, "signer": SERVER.fingerprint}
    assert (code, proved | about) == (0, proved)
    assert not verify()[1]["root_known"]
    assert "another tree" in str(verify("--root", "0" * 64)[1])
    (tmp_path / "task.json").write_bytes(signed(replace(REPORTS, number=2)))
    assert "not what was asked" in str(verify("--task", "task.json")[1])


def test_a_receipt_for_anything_else_is_not_kept(tmp_path: Path) -> None:
    """Another envelope, task, salt or server, or more epsilon than was agreed to."""
    envelope, task, other = tmp_path / "e.json", REPORTS.digest(), "0" * 64
    envelope.write_bytes(b"{}\n")
    salt = envelope_salt(salt_beside(envelope), b"{}\n").hex()
    digest = hashlib.sha256(b"{}\n").hexdigest()
    key, server = ReceiptKey.of_round(SERVER, task), SERVER.fingerprint
    good = Receipt(task, 2.0, salt, digest)
    assert salt_beside(envelope) == salt_beside(envelope)
    for wrong in (
        replace(good, envelope=other),
        replace(good, salt=other),
        replace(good, epsilon=2.5),
    ):
        with pytest.raises(UserError):
            keep_receipt(envelope, key.sign(wrong), task, 2.0, server)
    for about in ((other, 2.0, server), (task, 2.0, other), (task, 1.0, server)):
        with pytest.raises(UserError):
            keep_receipt(envelope, key.sign(good), *about)
    with pytest.raises(UserError):
        keep_receipt(envelope, {"leaf": "x"}, task, 2.0, server)
    assert not envelope.with_suffix(".receipt").exists()
    assert keep_receipt(envelope, key.sign(good), task, 2.0, server).exists()
