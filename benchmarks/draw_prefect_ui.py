"""Draw Prefect's pages of two projects, in a headless browser.

    python -m benchmarks.draw_prefect_ui /usr/bin/chromium [served|own]

The first is served. docs/prefect-ui.png shows the runs of three pipelines of a
temporary project, one that completes, one whose file is not there and one that waits
for envelopes; docs/prefect-failed.png the page of the second. Orders each as the page's
own button does and logs in as a user would (the page keeps what was typed under the
name that stands below).

The second is run by a worker of a plain Prefect server: docs/prefect-form.png shows the
form of a custom run with a stage chosen, docs/prefect-run.png the run's tasks,
docs/prefect-summary.png its summary. Needs Chromium; each takes about two minutes.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import time
from pathlib import Path
from subprocess import Popen

from benchmarks.browser import ROOT, Page, browser, process
from curvote.flows.environment import read_secret
from curvote.flows.server.private import PrefectServer, read_serving
from curvote.pipeline.config.yaml_document import as_yaml, parse_value
from tests.own_server import POOL, own_server

DOCS = ROOT / "docs"
WEEKLY = {"cron": "0 6 * * 1", "timezone": "Europe/London"}
PEOPLE = {
    "source": {
        "name": "table",
        "path": "people.csv",
        "id": "person",
        "label": "outcome",
        "positive": "ill",
        "features": ["age", "dose"],
        "bounds": {"age": [18, 100], "dose": [0, 6]},
    },
    "clients": {"train": 200, "vote": 200, "test": 100},
    "project": {"basis": "identity", "rescale": "min_max", "bounds": "public"},
    "train": {"count": 4, "size": 50},
    "epsilon": [1, 5],
    "learners": ["centroid"],
}


def main(chromium: str, *parts: str) -> None:
    """Draw the pages of both projects, or of one."""
    drawn = {"served": _draw_served, "own": _draw_own}
    for part in parts or drawn:
        drawn[part](chromium)


_CHOOSE = """(async () => {
  const rest = ms => new Promise(done => setTimeout(done, ms));
  const open = element => {
    element.scrollIntoView({block: 'center'});
    for (const kind of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'])
      element.dispatchEvent(new PointerEvent(kind, {bubbles: true, button: 0}));
  };
  open([...document.querySelectorAll('button')].filter(
    button => button.textContent.trim() == 'Select')[0]);
  await rest(1000);
  const rows = [...document.querySelectorAll('[role=option], [cmdk-item]')];
  open(rows.find(row => row.textContent.trim() == 'train'));
  await rest(500);
  document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
  await rest(500);
  window.scrollTo(0, 0);
})()"""


def _draw_own(chromium: str) -> None:
    """Order two runs of a plain server's worker, and draw form, run and summary."""
    known = parse_value((ROOT / "pipelines.yaml").read_text())["pipelines"]
    demo = known["demo"] | {"learners": ["centroid"], "schedule": WEEKLY}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "hospital"
        root.mkdir()
        (root / "pipelines.yaml").write_text(as_yaml({"pipelines": {"demo": demo}}))
        with own_server(root, Path(folder) / "state") as server:
            server.command("curvote.cli", "deploy", "--pool", POOL, "--register")
            server.order("curvote/demo")
            run = server.order("curvote/demo", parameters={"force": ["train"]})
            pages = f"{server.url.removesuffix('/api')}/v2"
            made = {a["key"]: a["id"] for a in server.of_run("artifacts", run)}
            with browser(chromium, 1100, 1330) as page:
                page.open(
                    f"{pages}/deployments/deployment/{run['deployment_id']}/run", 12
                )
                page.run(_CHOOSE)
                page.draw(DOCS / "prefect-form.png")
            with browser(chromium, 1100, 1000) as page:
                page.open(f"{pages}/runs/flow-run/{run['id']}?tab=TaskRuns", 12)
                page.draw(DOCS / "prefect-run.png")
                page.open(f"{pages}/artifacts/artifact/{made['demo-summary']}", 10)
                page.draw(DOCS / "prefect-summary.png")


def _draw_served(chromium: str) -> None:
    """Serve, run, log in, draw."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "hospital"
        _write(root)
        command = (sys.executable, "-m", "curvote.cli", "serve", "--port", "0")
        with process(*command, "--project", str(root), stderr=None) as serving:
            pages, secret, runs = _after_a_run_of_each(root, serving)
            with browser(chromium, 1280, 1180) as page:
                _log_in(page, pages, secret)
                page.open(f"{pages}/v2/runs", seconds=15)
                page.draw(DOCS / "prefect-ui.png")
            with browser(chromium, 1280, 700) as page:
                _log_in(page, pages, secret)
                page.open(f"{pages}/v2/runs/flow-run/{runs['people']}", seconds=15)
                page.draw(DOCS / "prefect-failed.png")


def _log_in(page: Page, pages: str, secret: str) -> None:
    kept = base64.b64encode(secret.encode()).decode()
    page.open(pages, seconds=5)
    page.run(f"localStorage.setItem('prefect-password', '{kept}')")


def _write(root: Path) -> None:
    root.mkdir()
    known = parse_value((ROOT / "pipelines.yaml").read_text())["pipelines"]
    made = {
        "demo": known["demo"] | {"learners": ["centroid"]},
        "people": PEOPLE,
        "remote": known["phonemes-remote"],
    }
    every = {name: each | {"schedule": WEEKLY} for name, each in made.items()}
    (root / "pipelines.yaml").write_text(as_yaml({"pipelines": every}))


def _after_a_run_of_each(
    root: Path, serving: Popen[str]
) -> tuple[str, str, dict[str, str]]:
    """Return the address of the pages, the server's secret and the runs' ids."""
    while read_serving(root / "data" / "state" / "prefect") is None:
        if serving.poll() is not None:
            raise SystemExit("curvote serve has ended")
        time.sleep(1)
    with PrefectServer(root) as server:
        server.wait()
        from prefect.deployments import run_deployment

        time.sleep(30)  # until the deployments are registered
        runs = {
            name: str(run_deployment(f"scheduled/{name}", as_subflow=False).id)
            for name in ("demo", "people", "remote")
        }
        pages = server.url.removesuffix("/api")
        return pages, read_secret(server.secret_file), runs


if __name__ == "__main__":
    main(*sys.argv[1:])
