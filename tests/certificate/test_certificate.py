"""A certificate of each kind of run: it holds for strangers, and names nobody."""

import ast
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.browser import browser
from curvote.base.errors import InternalError, UserError
from curvote.cli.app import app
from curvote.intake.box import Intake
from curvote.ledger.book import open_existing
from curvote.pipeline.config.project import Project
from curvote.pipeline.release.publication import read_invitations, server_key
from curvote.pipeline.run.run_object import find_run
from curvote.report.certificate import document, verify
from curvote.wire.merkle import MerkleTree
from tests import exchange, plain, town
from tests.browser import script
from tests.certificate import by_hand, checkers
from tests.formats import make


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a study and a release of clients who are here."""
    root = tmp_path_factory.mktemp("house")
    make.make(root)
    return Project(root)


def certified(project: Project, name: str, out: Path) -> str:
    """Return the certificate that the command writes of a pipeline."""
    words = ["certify", name, "--out", str(out), "--project", str(project.root)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output or done.exception
    text = (out / document.FILE).read_text("ascii")
    assert server_key(project).fingerprint in done.output
    return text


def numbers(text: str) -> dict[str, Any]:
    """Return the certificate in a file."""
    return dict(json.loads(text)["certificate"])


@checkers.needs_node
def test_a_study_and_a_release_hold_for_both(project: Project, tmp_path: Path) -> None:
    """The release counts each client, within the cap; the study protects nobody."""
    texts = [certified(project, name, tmp_path / name) for name in ("real", "tiny")]
    signer = server_key(project).fingerprint
    lines = checkers.by_python(texts, signer)
    assert lines == [f"intact, signer as expected: {signer}"] * 2
    assert checkers.by_page(tmp_path, texts, signer) == lines
    assert checkers.by_page(tmp_path, texts, signer, own=True) == lines
    release, study = map(numbers, texts)
    assert (release["kind"], study["kind"]) == ("release", "study")
    assert study["people"] is None
    assert study["protects"]["model"] == "nobody"
    assert [m["sent"] for m in release["messages"]] == [12, 20]
    people = release["people"]
    assert people["groups"] == [
        {"people": 20, "sends": [0, 1]},
        {"people": 12, "sends": [1, 0]},
    ]
    assert people["linked"]
    assert people["cap"]
    assert people["total"]
    with open_existing(project.ledger) as ledger:  # type: ignore[union-attr]
        moves = ledger.movements()
    root = MerkleTree(bytes.fromhex(move.head) for move in moves).root.hex()
    assert release["ledger"]["root"] == root
    assert release["ledger"]["count"] == 4


def test_the_program_stands_alone(project: Project, tmp_path: Path) -> None:
    """At most 400 lines; no word of curvote is imported; it ends with 0, or with 1."""
    text = certified(project, "real", tmp_path)
    code = (tmp_path / "verify.py").read_text("utf-8")
    assert len(code.splitlines()) <= 400
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or node.names[0].name]
    }
    assert imported <= {*sys.stdlib_module_names, "cryptography"}
    assert (tmp_path / "verify.html").read_bytes() == checkers.PAGE.read_bytes()
    signer = server_key(project).fingerprint

    def run(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-I", "verify.py", *words]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert not done.stderr
        return done.returncode, done.stdout

    assert run(document.FILE)[1].startswith(f"intact, signer unchecked: {signer}\n")
    assert run(document.FILE, "--signer", signer)[0] == 0
    code_and_words = run(document.FILE, "--signer", "0" * 64)
    assert code_and_words == (1, f"refused: it is signed by another: {signer}\n")
    assert run("nowhere.json")[0] == 1
    shown = text.replace('"real"', '"\\u001b[2J\\n"', 1)
    (tmp_path / "altered.json").write_text(shown)
    assert run("altered.json")[1].startswith("refused: the signature is wrong")


def secrets_of(project: Project, name: str) -> set[str]:
    """Return what the server's side knows and nobody else may."""
    found = set[str]()
    for path in project.published(name).glob("*.jsonl"):
        found |= {text for i in read_invitations(path) for text in (i.id, i.key)}
    key = (project.state / "server.key").read_text()
    found |= {line for line in key.splitlines() if "-" not in line}
    if project.ledger.exists():
        with closing(sqlite3.connect(project.ledger)) as db:
            rows = db.execute(
                "SELECT event, link FROM chain ORDER BY number"
            ).fetchall()
        found |= {link for _, link in rows} | {json.loads(rows[0][0])["key"]}
    return found


def leaks(text: str, secrets: set[str]) -> set[str]:
    """Return the secrets that stand in a certificate."""
    return {secret for secret in secrets if secret in text}


@checkers.needs_node
def test_a_round_by_envelope_names_no_invitation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Roots of what was accepted stand in it where the intake keeps them."""
    project = plain.write(tmp_path / "far", far=exchange.FAR)
    server, rng = exchange.Server(project), np.random.default_rng(3)
    sent = []
    for asks, n in (("report", 60), ("vote", 80)):
        server.run()
        curves, labels = rng.normal(size=(n, 20)), rng.choice([-1, 1], n)
        sent += exchange.answers(server, asks, curves, labels, tmp_path / asks)
        server.take(sent[-n:])
    server.run()
    first = certified(project, "far", tmp_path / "out")
    with Intake(project.intake) as intake:
        roots = intake.roots("far")
    assert [n for *_, n in roots] == [60, 80]
    assert {
        (m["task"]["digest"], m["envelopes"]["root"], m["sent"])
        for m in numbers(first)["messages"]
    } == {*roots}
    roots = [(roots[0][0], "ab" * 32, 60), (*roots[1][:2], 81)]
    monkeypatch.setattr(Intake, "roots", lambda *_: roots)
    text = certified(project, "far", tmp_path / "out")
    trees = [m["envelopes"] for m in numbers(text)["messages"]]
    assert trees[0] == {"root": "ab" * 32, "count": 60, "why": None, "leaves": None}
    assert trees[1]["why"] == "81 envelopes were accepted, 80 are used"
    lines = checkers.by_python([first, text])
    assert checkers.by_page(tmp_path, [first, text]) == lines
    assert {line[:6] for line in lines} == {"intact"}
    secrets = secrets_of(project, "far")
    assert len(secrets) > 280
    assert not leaks(text, secrets)
    envelopes = [json.loads(line)["payload"] for line in sent]
    assert not leaks(text, set(envelopes))
    # The broken twin: a certificate that says who was invited, or what came.
    invited = read_invitations(server.published("vote")[1])[0].id
    for told in (invited, envelopes[0]):
        monkeypatch.setattr(document, "_list_public", lambda *_, told=told: [told])
        twin = certified(project, "far", tmp_path / "out")
        assert leaks(twin, secrets | set(envelopes)) == {told}


def test_it_is_made_without_any_table_of_clients(
    project: Project, tmp_path: Path
) -> None:
    """The same bytes once those are gone: it is a function of tasks and counts."""
    text = certified(project, "real", tmp_path / "before")
    copy = Project(tmp_path / "copy")
    shutil.copytree(project.root, copy.root)
    tables = list(copy.clients.rglob("*.parquet"))
    assert tables
    for table in tables:
        table.unlink()
    assert certified(copy, "real", tmp_path / "after") == text
    assert not leaks(text, secrets_of(project, "real"))


def test_what_cannot_be_certified_is_refused(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study of private records; what would not hold is never written."""
    settings = {"source": town.TABLE, "clients": {"train": 50, "vote": 60, "test": 30}}
    how = {"basis": "identity", "rescale": "min_max", "bounds": "public"}
    private = plain.write(
        tmp_path / "own", tiny=plain.FEW | settings | {"project": how}
    )
    town.export(private.root, str)
    with pytest.raises(UserError, match="nobody published"):
        document.make_certificate(private, plain.run(private))
    record = find_run(project, "tiny")
    monkeypatch.setattr(document, "_fill_forms", lambda _: {})
    with pytest.raises(InternalError, match="does not hold"):
        document.write_certificate(project, record, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_the_page_names_the_code_that_it_runs() -> None:
    """`python -m tests.certificate.checkers` stamps it; nothing else may run."""
    text = checkers.PAGE.read_text("utf-8")
    for name in ("script", "style"):
        assert f"{name}-src '{script.source_hash(name, checkers.PAGE)}'" in text
    assert "default-src 'none'" in text
    assert "http" not in script.part("script", checkers.PAGE)


@pytest.mark.skipif(
    not shutil.which("chromium"), reason="SKIPPED: no Chromium here, no page is opened"
)
def test_a_person_drops_a_file_and_reads_the_verdict(tmp_path: Path) -> None:
    """By WebCrypto in Chromium: one that holds, then one that was altered."""
    text = checkers.Signer().text(by_hand.local())
    files = tmp_path / "good.json", tmp_path / "bad.json"
    for file, content in zip(files, (text, text.replace("15", "14", 1)), strict=True):
        file.write_text(content)
    verdict = "document.getElementById('verdict').{}"
    with browser(str(shutil.which("chromium")), 900, 900) as page:
        page.ask("Page.enable")
        page.open(checkers.PAGE.as_uri(), seconds=0)
        page.until(
            "document.readyState === 'complete' && location.protocol === 'file:'"
        )
        for file, outcome in zip(files, ("holds", "refused"), strict=True):
            page.give("#file", file)
            page.until(verdict.format("className") + f" === '{outcome}'")
        shown = page.value(verdict.format("textContent"))
    assert shown.startswith("refused: the signature is wrong")
    assert os.sep not in shown
    assert verify.PREFIX.decode() not in shown
