"""What the browser's page could leak: requests, storage, lengths, numbers of words."""

import re
from pathlib import Path

import pytest

from curvote.base.entropy import SeededEntropy
from tests.browser.script import PAGE, needs_node, part, run, source_hash
from tests.browser.tasks import TASKS, Server
from tests.vectors.envelope import curve


def test_its_rules_name_its_own_script_and_style() -> None:
    """What else a page could run, fetch or send, the browser refuses.

    After a change of the page `python -m tests.browser.script` writes them anew.
    """
    (rules,) = re.findall(
        r'Content-Security-Policy" content="([^"]*)"', PAGE.read_text("utf-8")
    )
    assert rules == (
        f"default-src 'none'; script-src '{source_hash('script')}'; style-src"
        f" '{source_hash('style')}'; base-uri 'none'; form-action 'none';"
        " require-trusted-types-for 'script'"
    )


def test_it_names_nothing_that_stores_or_sends() -> None:
    """One request, no address, no other randomness, and of storage one place."""
    text = re.sub("<!--.*?-->", "", PAGE.read_text("utf-8"), flags=re.DOTALL)
    for name in (
        "XMLHttp", "WebSocket", "EventSource", "sendBeacon", "RTCPeer",
        "sessionStorage", "indexedDB", "cookie", "caches", "history.",
        "innerHTML", "eval", "Function(", "import(", "Math.random", "new Date", "http:",
        "https:", "src=",
    ):  # fmt: skip
        assert name not in text, name
    assert text.count("localStorage") == text.count("fetch") == 1
    assert len(re.findall(r"<script|<style|<link|<img|<iframe|<form|<a ", text)) == 3


def test_it_can_be_read_at_one_sitting() -> None:
    """No more lines than a person reads at one go, and few enough of script."""
    assert len(PAGE.read_text("utf-8").splitlines()) < 1010
    assert len(part("script").splitlines()) < 920


@needs_node
@pytest.mark.parametrize("asks", TASKS)
def test_the_length_of_an_envelope_tells_nothing(tmp_path: Path, asks: str) -> None:
    """Nor does the number of words that are drawn, whatever the record holds."""
    server = Server(tmp_path, TASKS[asks], 1)
    code = """
    const { task } = await opened(given.line), lengths = [], drawn = [];
    for (let i = 0; i < 40; i++) {
      const values = given.curve.map((x) => x * i / 5), words = tape(given.words);
      const sent = message(task, given.invitation.about, values, [i % 2], words);
      lengths.push((await envelope(given.invitation, sent)).length);
      drawn.push(words.left.length);
    }
    return [lengths, drawn];
    """
    words = [f"{word:016x}" for word in SeededEntropy(7).words(200)]
    given = {"line": server.line, "curve": curve().tolist(), "words": words}
    given["invitation"] = server.invitations[0].to_json()
    lengths, drawn = run(tmp_path, code, given)
    assert len(set(lengths)) == 1
    assert len(set(drawn)) == 1
