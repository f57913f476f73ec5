"""A headless Chromium that takes pictures of pages (DevTools protocol)."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import tempfile
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
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

    def open(self, address: str, seconds: float) -> None:
        """Go there, and wait until it has drawn itself."""
        _ask(self.link, "Page.navigate", url="about:blank")
        _ask(self.link, "Page.navigate", url=address)
        time.sleep(seconds)

    def run(self, script: str) -> None:
        """Run JavaScript in the page."""
        _ask(self.link, "Runtime.evaluate", expression=script)

    def draw(self, picture: Path) -> None:
        """Save what the page looks like."""
        drawn = base64.b64decode(_ask(self.link, "Page.captureScreenshot")["data"])
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


def _ask(link: ClientConnection, method: str, **params: Any) -> dict[str, Any]:
    link.send(json.dumps({"id": 1, "method": method, "params": params}))
    while True:
        answer = json.loads(link.recv())
        if answer.get("id") == 1:
            result: dict[str, Any] = answer["result"]
            return result
