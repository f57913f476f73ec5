"""Draw docs/prefect-ui.png: Prefect's pages of a served project, in a headless browser.

    python benchmarks/draw_prefect_ui.py /usr/bin/chromium

Serves the demo pipeline of a temporary project, orders two runs as the page's own
button does, logs in as a user would (the page keeps what was typed under the name that
stands below) and takes one picture. Needs Chromium; takes about two minutes.
"""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from PIL import Image
from websockets.sync.client import ClientConnection, connect

from flows.access import read_secret
from flows.server import PrefectServer, served_by

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "prefect-ui.png"
WEEKLY = {"cron": "0 6 * * 1", "timezone": "Europe/London"}
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
    "--window-size=1280,860",
]


def main(chromium: str) -> None:
    """Serve, run, log in, draw."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "hospital"
        _write(root)
        with _process(sys.executable, "-m", "flows", "serve", "--project", str(root)):
            page, secret = _after_two_runs(root)
            with _browser(chromium, Path(folder) / "browser") as browser:
                _draw(browser, page, secret)


def _write(root: Path) -> None:
    root.mkdir()
    demo = yaml.safe_load((ROOT / "pipelines.yaml").read_text())["pipelines"]["demo"]
    own = demo | {"learners": ["centroid"], "schedule": WEEKLY}
    text = yaml.safe_dump({"pipelines": {"demo": own}}, sort_keys=False)
    (root / "pipelines.yaml").write_text(text)


@contextmanager
def _process(*command: str) -> Iterator[None]:
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def _after_two_runs(root: Path) -> tuple[str, str]:
    """Return the address of the deployment's page and the secret of the server."""
    while served_by(root / "data" / "state" / "prefect") is None:
        time.sleep(1)
    with PrefectServer(root) as server:
        server.wait()
        from prefect.deployments import run_deployment

        time.sleep(10)  # until the deployment is registered
        for _ in range(2):
            run = run_deployment("scheduled/demo", as_subflow=False)
        pages = server.url.removesuffix("/api")
        place = f"{pages}/v2/deployments/deployment/{run.deployment_id}"
        return place, read_secret(server.secret_file)


@contextmanager
def _browser(chromium: str, folder: Path) -> Iterator[ClientConnection]:
    """Yield the connection to a page of a fresh browser (DevTools protocol)."""
    with _process(chromium, *FLAGS, f"--user-data-dir={folder}", "about:blank"):
        active = folder / "DevToolsActivePort"
        while not active.exists():
            time.sleep(0.5)
        port, path = active.read_text().split()
        with closing(connect(f"ws://127.0.0.1:{port}{path}", max_size=None)) as link:
            (first, *_) = _ask(link, "Target.getTargets")["targetInfos"]
            place = f"ws://127.0.0.1:{port}/devtools/page/{first['targetId']}"
        with closing(connect(place, max_size=None)) as link:
            yield link


def _draw(browser: ClientConnection, page: str, secret: str) -> None:
    kept = base64.b64encode(secret.encode()).decode()
    _ask(browser, "Page.navigate", url=page)
    time.sleep(5)
    log_in = f"localStorage.setItem('prefect-password', '{kept}')"
    _ask(browser, "Runtime.evaluate", expression=log_in)
    _ask(browser, "Page.navigate", url=page)
    time.sleep(15)
    drawn = base64.b64decode(_ask(browser, "Page.captureScreenshot")["data"])
    picture = Image.open(BytesIO(drawn)).convert("RGB").quantize(64)
    picture.save(PICTURE, optimize=True)


def _ask(link: ClientConnection, method: str, **params: Any) -> dict[str, Any]:
    link.send(json.dumps({"id": 1, "method": method, "params": params}))
    while True:
        answer = json.loads(link.recv())
        if answer.get("id") == 1:
            result: dict[str, Any] = answer["result"]
            return result


if __name__ == "__main__":
    main(*sys.argv[1:])
