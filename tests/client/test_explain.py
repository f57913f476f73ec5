"""`curvote explain`: words, and files that may come from anybody."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from curvote.base.errors import UserError
from curvote.chain.registry import SYSTEMS
from curvote.cli.app import app
from curvote.cli.commands.explain import KINDS, explained_texts
from curvote.learning.learners.registry import LEARNERS
from curvote.mechanisms.registry import MECHANISMS
from curvote.systems.labels.learners.registry import LEARNERS as LABEL_LEARNERS
from curvote.wire.envelope import new_private_key, public_key, seal_message
from tests.invited import Home
from tests.ledgers import filled
from tests.rounds import REPORTS
from tests.test_plain_words import house_words


def explain(word: str) -> Result:
    """Run `curvote explain` with the words that blanks part."""
    return CliRunner().invoke(app, ["explain", *word.split()])


def test_each_word_has_a_text() -> None:
    """No text is stale, and none has a word of the house's own."""
    texts = explained_texts()
    registries = SYSTEMS, MECHANISMS, LEARNERS, LABEL_LEARNERS
    for kind, registry in zip(KINDS, registries, strict=True):
        shipped = {name for name in registry if not registry.origin(name)}
        assert texts[kind].keys() == shipped, f"curvote/cli/words.toml, {kind}"
    assert not house_words(json.dumps(texts))


def test_a_word_is_explained_wherever_it_stands() -> None:
    """Settings by path or last word, terms also in the plural, names of parts."""
    for word, phrases in {
        "project.size": ["numbers (d) stand for a curve", "unit", "size: 5"],
        "size": ["project.size:", "train.size:", "public.size:"],
        "missing": ["stands at", "source.heart.missing, ", "default       centre"],
        "privatize": ["has           mechanism, params, label_share"],
        "weak classifiers": ["few reports"],
        "direct": ["direct: a protocol", "direct: a setting"],
    }.items():
        output = explain(word).output
        assert all(phrase in output for phrase in phrases), output


def test_each_kind_of_file_is_explained_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is, what it costs, who checks it; a wrong file or word: why not."""
    home, private = Home(tmp_path / "home", monkeypatch), new_private_key()
    invitation, payload = home.invite(REPORTS), {"z": [0.5], "a\x1b[2J": 1}
    sealed = seal_message(invitation, payload, public_key(private))
    Path("sealed.json").write_bytes(sealed)
    Path("envelope.json").write_bytes(seal_message(invitation, payload))
    filled(Path("ledger.sqlite"))
    before = {path: path.read_bytes() for path in home.root.iterdir()}
    for file, phrases in {
        "task.json": ["one report", "spends epsilon 1,", "2.72", "may answer it"],
        "invitation.json": ["send one message, once", "A secret is in it"],
        "envelope.json": ["holds a?[2J, z", "Its sender has spent"],
        "sealed.json": [f"{len(sealed)} bytes", "learns its size"],
        "ledger.sqlite": ["A row is one release", "row 1", "It names clients"],
    }.items():
        output = " ".join(explain(file).output.split())
        assert all(phrase in output for phrase in [*phrases, "a thief"]), output
        for secret in (invitation.key, invitation.id, private, "\x1b"):
            assert secret not in output
    assert {path: path.read_bytes() for path in home.root.iterdir()} == before
    for name, content, reason in (
        ("sise", b"", "Did you mean size"),
        ("no.json", b"", "there is no file no.json"),
        ("server.pem", b"-----BEGIN PRIVATE KEY-----\nx", "Show it to nobody"),
        ("a.sqlite", b"SQLite format 3\0" + bytes(99), "is no task, invitation"),
        ("a.json", b'{"asks":"report"}', "a task without a signature"),
        ("b.json", b'{"key":"a","asks":"report","id":"b"}', "not an invitation"),
        ("n.bin", b"\xff\x00", "not UTF-8"),
    ):
        if content:
            Path(name).write_bytes(content)
        error = explain(name).exception
        assert isinstance(error, UserError), name
        assert reason in str(error)
