"""The page as a person meets it, in headless Chromium, and what it cannot do there."""

import hashlib
import hmac
import json
import shutil
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest

from benchmarks.browser import Page, browser
from curvote.client.page import browser_page
from curvote.intake.box import Intake
from curvote.wire.envelope import Invitation, is_genuine, read_envelope
from curvote.wire.merkle import MerkleTree, leaves_document
from curvote.wire.receipt import ReceiptKey
from curvote.wire.strict_json import canonical_json
from tests.browser.script import PAGE
from tests.browser.tasks import TASKS, Server, signed
from tests.browser.test_codes import MONITOR
from tests.envelope_service import NAME, project, serving
from tests.processes import until
from tests.vectors.envelope import KEY

CHROMIUM: Final = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    not CHROMIUM, reason="SKIPPED: no Chromium here, the page is not opened"
)
TEXT: Final = "document.getElementById('{}').textContent"
CHOOSE: Final = "document.querySelectorAll('#answers button')[1].click()"
AGREE: Final = "document.getElementById('consent').click()"
DRAW: Final = "document.getElementById('draw').click()"
SHOWN: Final = "!document.getElementById('review').hidden"
DISABLED: Final = "document.getElementById('{}').disabled"


class _Asked(BaseHTTPRequestHandler):
    """Gives out the page, and remembers every request."""

    def __init__(self, asked: list[str], text: bytes, *given: Any) -> None:
        self._asked, self._text = asked, text
        super().__init__(*given)

    def do_GET(self) -> None:
        """Return the page, whatever was asked for."""
        self._asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self._text)

    do_POST = do_GET  # noqa: N815 - the name that the server looks for

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def opened() -> Iterator[Page]:
    """A page of one browser for all tests, each of which loads it anew."""
    with browser(str(CHROMIUM), 900, 1200) as page:
        for name in ("Page", "Network", "Log"):
            page.ask(f"{name}.enable")
        yield page


@pytest.fixture
def page(opened: Page, tmp_path: Path) -> Page:
    """The client, from its file, with its own folder for what it writes."""
    return _loaded(opened, PAGE, tmp_path / "written")


def _loaded(opened: Page, file: Path, folder: Path) -> Page:
    """Return the page once it is there, with a folder for what it writes."""
    place = str(folder)
    opened.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=place)
    opened.open(file.as_uri(), seconds=0)
    opened.until("document.readyState === 'complete' && location.protocol === 'file:'")
    opened.value("localStorage.clear()")
    opened.events.clear()
    return opened


def _written(page: Page, folder: Path) -> list[Path]:
    """Return the files that the page wrote, once the first is whole."""
    page.until(TEXT.format("done"))
    for _ in range(100):
        found = [path for path in folder.glob("*.json") if path.stat().st_size]
        if found:
            return found
        page.value("new Promise((done) => setTimeout(done, 100))")
    return []


def _note(server: Server) -> str:
    """Return the name of the note that the first invitation was answered."""
    key = bytes.fromhex(server.invitations[0].key)
    return hmac.new(key, b"curvote answered", "sha256").hexdigest()[:32]


@pytest.mark.parametrize("asks", TASKS)
def test_a_person_answers_and_is_heard(page: Page, tmp_path: Path, asks: str) -> None:
    """Files in, the budget read, a class, consent: one envelope, which is accepted."""
    server = Server(tmp_path, TASKS[asks], 1)
    page.give("#files", *server.files())
    page.until(SHOWN)
    budget = page.value(TEXT.format("budget"))
    assert f"one noised {asks} to server {KEY.fingerprint[:12]}" in budget
    assert f"epsilon {server.task.epsilon:g} " in budget
    assert {10.0: "22,027", 2.0: "7.39"}[server.task.epsilon] in budget
    assert KEY.fingerprint in page.value(TEXT.format("server"))
    assert page.value(DISABLED.format("consent"))  # no class, no consent
    page.value(CHOOSE)
    assert page.value(DISABLED.format("draw"))
    assert "what leaves" not in page.value(TEXT.format("numbers"))
    page.value(AGREE)
    page.value(DRAW)
    (file,) = _written(page, tmp_path / "written")
    assert file.name == server.invitations[0].file_name
    assert "what leaves" in page.value(TEXT.format("numbers"))
    sent = read_envelope(file.read_bytes()).payload
    server.take(file.read_text("utf-8"))
    assert [json.loads(json.dumps(message)) for message in server.taken()] == [sent]


def test_noise_is_drawn_once(page: Page, tmp_path: Path) -> None:
    """Whatever is clicked or dropped after it: no second message of this page."""
    server = Server(tmp_path, TASKS["report"], 2)
    page.give("#files", *server.files())
    page.until(SHOWN)
    page.value(CHOOSE)
    page.value(AGREE)
    page.value(f"{DRAW}; {DRAW}")
    (file,) = _written(page, tmp_path / "written")
    kept, numbers = file.read_bytes(), page.value(TEXT.format("numbers"))
    again = "document.getElementById('{}').disabled = false"
    page.value("; ".join(again.format(name) for name in ("draw", "consent", "files")))
    page.value(DRAW)
    page.give("#files", *server.files(1))
    page.value(DRAW)
    page.value("new Promise((done) => setTimeout(done, 300))")
    assert _written(page, tmp_path / "written") == [file]
    assert file.read_bytes() == kept
    assert page.value(TEXT.format("numbers")) == numbers


def test_an_invitation_is_answered_once_in_a_browser(page, tmp_path):
    """Loaded anew, or open in two windows: the same one is refused, another is not.

    Where the browser keeps nothing the page says before that it stops nobody.
    """
    server = Server(tmp_path, TASKS["report"], 2)
    page.give("#files", *server.files())
    page.until(SHOWN)
    said = page.value("document.getElementById('review').textContent")
    assert "keeps no ledger" in said
    assert "in this browser only" in said
    for click in (CHOOSE, AGREE):
        page.value(click)
    note = _note(server)
    page.value(f"localStorage.setItem('{note}', 'answered')")  # in another window
    page.value(DRAW)
    assert "answered that invitation before" in page.until(TEXT.format("refused"))
    assert not page.value(SHOWN)
    page.open(PAGE.as_uri(), seconds=0.5)
    page.give("#files", *server.files())
    assert "answered that invitation before" in page.until(TEXT.format("refused"))
    page.give("#files", server.files(1)[1])
    page.until(SHOWN)


def test_nothing_is_asked_for_and_nothing_is_kept(page: Page, tmp_path: Path) -> None:
    """From the files to the envelope no request, no complaint; after it one note.

    Who has not the invitation's key cannot tell from the note which one it is.
    """
    server = Server(tmp_path, TASKS["report"], 1)
    page.give("#files", *server.files())
    page.until(SHOWN)
    for click in (CHOOSE, AGREE, DRAW):
        page.value(click)
    assert _written(page, tmp_path / "written")
    told = [
        event["params"]["request"]["url"]
        for event in page.events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert not [url for url in told if not url.startswith("blob:")]
    assert page.value("sessionStorage.length") == 0
    note = _note(server)
    assert page.value("JSON.stringify({...localStorage})") == f'{{"{note}":"answered"}}'
    assert page.value("document.cookie") == ""
    assert page.value("indexedDB.databases().then((all) => all.length)") == 0
    wrong = [e for e in page.events if e["method"] == "Log.entryAdded"]
    assert not wrong


# What a script in the page could try, each with the server's address; the form is the
# last, because where it is sent it leaves the page.
WAYS: Final = {
    "fetch": "fetch('{0}').catch(() => 0)",
    "beacon": "navigator.sendBeacon('{0}', 'x')",
    "image": "Object.assign(new Image(), {{ src: '{0}' }})",
    "frame": "add('iframe', {{ src: '{0}' }})",
    "style": "add('link', {{ rel: 'stylesheet', href: '{0}' }})",
    "form": "add('form', {{ method: 'post', action: '{0}' }}).submit()",
}
FREE: Final = {"/", "/favicon.ico"}
ADD: Final = """globalThis.add = (name, given) => {
  const made = Object.assign(document.createElement(name), given);
  document.body.append(made);
  return made;
}"""


@pytest.mark.parametrize("rules", ["its own", "with an intake", "none"])
def test_its_rules_forbid_every_way_to_send(opened: Page, rules: str) -> None:
    """Also to a script that somebody got into it; without them all would arrive.

    Where it may post to an intake, nothing else of that server is open to it.
    """
    text, asked = PAGE.read_bytes(), list[str]()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Asked) as server:
        place = f"http://127.0.0.1:{server.server_port}"
        given = browser_page(place) if rules == "with an intake" else text
        if rules == "none":
            given = text.replace(b"Content-Security-Policy", b"X")
        server.RequestHandlerClass = partial(_Asked, asked, given)  # type: ignore[assignment]
        Thread(target=server.serve_forever, daemon=True).start()
        opened.open(place, seconds=0)
        opened.until("document.readyState === 'complete' && location.port !== ''")
        opened.value(ADD)
        for count, (name, way) in enumerate(WAYS.items()):
            opened.value(way.format(f"{place}/{name}"))
            end = time.monotonic() + (60 if rules == "none" else 0.2)
            while time.monotonic() < end and len(set(asked) - FREE) <= count:
                time.sleep(0.05)
        server.shutdown()
    arrived = {f"/{name}" for name in WAYS} if rules == "none" else set()
    assert set(asked) - FREE == arrived


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (('"asks": "report"', '"asks": "vote"'), "another task"),
        (('"about": null', '"about": null, "more": 1'), "nothing else"),
        (("{", "{{"), "no JSON"),
    ],
)
def test_what_is_refused_is_said(page, tmp_path, change, why):
    """In words, with nothing to consent to, and right again with the right file."""
    task, invitation, curve = Server(tmp_path, TASKS["report"], 1).files()
    good = invitation.read_text("utf-8")
    invitation.write_text(good.replace(*change), "utf-8")
    page.give("#files", task, invitation, curve)
    said = page.until(TEXT.format("refused"))
    assert why in said
    assert said.endswith("Nothing was drawn.")
    assert not page.value(SHOWN)
    invitation.write_text(good, "utf-8")
    page.give("#files", invitation)
    page.until(SHOWN)
    assert page.value(TEXT.format("refused")) == ""


def test_two_buttons_answer_a_monitor(page: Page, tmp_path: Path) -> None:
    """Two files and a click: no curve, and the code of a word is in the file."""
    task = MONITOR | {"places": ["north"], "epsilon": 30}
    digest = hashlib.sha256(canonical_json(task)).hexdigest()
    invitation = Invitation("0" * 32, "7" * 64, digest, "answer", 0, KEY.fingerprint)
    texts = {"t.json": signed(task), "i.json": json.dumps(invitation.to_json())}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    page.give("#files", *(tmp_path / name for name in texts))
    page.until(SHOWN)
    buttons = "[...document.querySelectorAll('#answers button')]"
    found = page.value(f"{buttons}.map((button) => button.textContent)")
    assert found == ["It was right", "It was wrong"]
    assert "north" in page.value(TEXT.format("budget"))
    for click in (f"{buttons}[0].click()", AGREE, DRAW):
        page.value(click)
    (file,) = _written(page, tmp_path / "written")
    sent = read_envelope(file.read_bytes())
    assert is_genuine(sent, invitation.key)
    assert sent.payload == {"code": 1, "place": 0}


def test_an_intake_is_sent_it_and_its_answer_shown(opened: Page, tmp_path: Path):
    """From a file to the service: accepted, unknown, gone; the last two keep it."""
    place, told = project(tmp_path / "p"), TEXT.format("done")
    round_, made = Server(tmp_path, TASKS["report"], 3), tmp_path / "page.html"
    with Intake(place.intake) as intake:
        more: dict[str, Any] = {"pipeline": NAME, "needed": 1, "task": round_.task}
        more["receipts"] = ReceiptKey.of_round(KEY, round_.task.digest())
        intake.open_round("one", **more, invitations=round_.invitations[:2])

    def outcome(number: int) -> str:
        page = _loaded(opened, made, tmp_path / f"written {number}")
        page.give("#files", *round_.files(number))
        page.until(SHOWN)
        for click in (CHOOSE, AGREE, DRAW):
            page.value(click)
        return str(page.until(f"!/Sending|again in/.test({told}) && {told}"))

    with serving(place) as service:
        made.write_bytes(browser_page(f"http://127.0.0.1:{service.port}"))
        assert outcome(0).startswith("Accepted:")
        assert not [*tmp_path.glob("written 0/*")]
        link = "document.querySelector('#receipt a')"
        receipt = Path(str(opened.until(f"{link} && {link}.download")))
        opened.value(f"{link}.click()")
        receipt = tmp_path / "written 0" / receipt.name
        assert until(lambda: receipt.exists() and receipt.stat().st_size > 0, 20)
        with Intake(place.intake) as intake:
            assert intake.round("one").accepted == 1
            intake.close("one")
            tree = MerkleTree(intake.leaves("one"))
        leaves, counted = tmp_path / "leaves.json", TEXT.format("counted")
        document = leaves_document(tree, round_.task.digest())
        leaves.write_text(json.dumps(document))
        opened.open(made.as_uri(), seconds=0.5)
        opened.give("#files", receipt, leaves)
        said = opened.until(counted)
        assert "Counted, once, among 1" in said
        assert KEY.fingerprint in said
        assert tree.root.hex() in said
        leaves.write_text(json.dumps(document | {"leaves": ["0" * 64]}))
        opened.give("#files", leaves)
        assert "dropped" in opened.until(TEXT.format("refused"))
        assert "knows no such invitation" in outcome(2)
        assert _written(opened, tmp_path / "written 2")
    assert "cannot be reached" in outcome(1)
    assert _written(opened, tmp_path / "written 1")
    assert not opened.value("document.getElementById('again').hidden")
