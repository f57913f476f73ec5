"""A headless Chromium that takes pictures of pages (DevTools protocol)."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import tempfile
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from websockets.sync.client import ClientConnection, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
]


@dataclass(frozen=True)
class Page:
    """One page of a fresh browser."""

    link: ClientConnection
    events: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the browser itself; what it tells meanwhile is kept in ``events``."""
        return _ask(self.link, method, self.events, **params)

    def open(self, address: str, seconds: float) -> None:
        """Go there, and wait until it has drawn itself."""
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=address)
        time.sleep(seconds)

    def run(self, script: str) -> None:
        """Run JavaScript in the page."""
        self.value(script)

    def value(self, script: str) -> Any:
        """Return what JavaScript in the page comes to, once it is settled."""
        told = self.ask(
            "Runtime.evaluate",
            expression=script,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        return told["result"].get("value")

    def give(self, selector: str, *files: Path) -> None:
        """Choose files in the field that this selector finds."""
        root = self.ask("DOM.getDocument")["root"]["nodeId"]
        node = self.ask("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        chosen = [str(file) for file in files]
        self.ask("DOM.setFileInputFiles", nodeId=node, files=chosen)

    def until(self, script: str, seconds: float = 60) -> Any:
        """Return what the script comes to, as soon as that is true."""
        end = time.monotonic() + seconds
        while not (found := self.value(script)):
            if time.monotonic() > end:
                raise TimeoutError(f"{script} is not true after {seconds} s")
            time.sleep(0.1)
        return found

    def draw(self, picture: Path) -> None:
        """Save what the page looks like."""
        drawn = base64.b64decode(self.ask("Page.captureScreenshot")["data"])
        image = Image.open(BytesIO(drawn)).convert("RGB").quantize(128)
        image.save(picture, optimize=True)


@contextmanager
def process(*command: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a command in the checkout; end it as Ctrl-C does."""
    quiet = {"stderr": subprocess.DEVNULL, "text": True} | options
    started = subprocess.Popen(command, cwd=ROOT, **quiet)
    try:
        yield started
    finally:
        started.send_signal(signal.SIGINT)
        started.wait()


@contextmanager
def browser(chromium: str, width: int, height: int) -> Iterator[Page]:
    """Yield a page of a fresh browser whose window has this size."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        own = (f"--user-data-dir={folder}", f"--window-size={width},{height}")
        with process(chromium, *FLAGS, *own, "about:blank"):
            place = _page(folder / "DevToolsActivePort")
            with closing(connect(place, max_size=None)) as link:
                yield Page(link)


def _page(active: Path) -> str:
    """Return the address of the first page, once the browser is up."""
    while not active.exists() or len(active.read_text().split()) < 2:
        time.sleep(0.5)
    port, path = active.read_text().split()
    with closing(connect(f"ws://127.0.0.1:{port}{path}", max_size=None)) as link:
        (first, *_) = _ask(link, "Target.getTargets")["targetInfos"]
    return f"ws://127.0.0.1:{port}/devtools/page/{first['targetId']}"


def _ask(
    link: ClientConnection,
    method: str,
    events: list[dict[str, Any]] | None = None,
    **params: Any,
) -> dict[str, Any]:
    link.send(json.dumps({"id": 1, "method": method, "params": params}))
    while True:
        answer = json.loads(link.recv())
        if answer.get("id") == 1:
            result: dict[str, Any] = answer["result"]
            return result
        if events is not None:
            events.append(answer)
