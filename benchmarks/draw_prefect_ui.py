"""Draw docs/prefect-ui.png: Prefect's pages of a served project, in a headless browser.

    python -m benchmarks.draw_prefect_ui /usr/bin/chromium

Serves the demo pipeline of a temporary project, orders two runs as the page's own
button does, logs in as a user would (the page keeps what was typed under the name that
stands below) and takes one picture. Needs Chromium; takes about two minutes.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.browser import ROOT, browser, process
from curvote.flows.server.access import read_secret
from curvote.flows.server.private import PrefectServer, served_by
from curvote.run.config.yaml_lines import as_yaml, parsed

PICTURE = ROOT / "docs" / "prefect-ui.png"
WEEKLY = {"cron": "0 6 * * 1", "timezone": "Europe/London"}


def main(chromium: str) -> None:
    """Serve, run, log in, draw."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "hospital"
        _write(root)
        with process(
            sys.executable, "-m", "curvote.flows", "serve", "--project", str(root)
        ):
            place, secret = _after_two_runs(root)
            kept = base64.b64encode(secret.encode()).decode()
            with browser(chromium, 1280, 860) as page:
                page.open(place, seconds=5)
                page.run(f"localStorage.setItem('prefect-password', '{kept}')")
                page.open(place, seconds=15)
                page.draw(PICTURE)


def _write(root: Path) -> None:
    root.mkdir()
    demo = parsed((ROOT / "pipelines.yaml").read_text())["pipelines"]["demo"]
    own = demo | {"learners": ["centroid"], "schedule": WEEKLY}
    text = as_yaml({"pipelines": {"demo": own}})
    (root / "pipelines.yaml").write_text(text)


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


if __name__ == "__main__":
    main(*sys.argv[1:])
