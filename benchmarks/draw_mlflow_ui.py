"""Draw docs/mlflow-*.png: what MLflow's pages show of three runs, without a click.

    python -m benchmarks.draw_mlflow_ui /usr/bin/chromium

Runs the demo pipeline of a temporary project three times, each with another size of the
parts that weak classifiers learn from, opens the link that `curvote ui` prints, and
takes a picture of the list, of its charts and of the comparison. MLflow's assistant,
which stands open at first, is closed. Needs Chromium; takes about three minutes.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import urlopen

from benchmarks.browser import ROOT, Page, browser, process
from curvote.flows.environment import prepare_environment
from curvote.flows.server.launch import listen
from curvote.flows.tracking.log import page_fragment
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records

PICTURES = ROOT / "docs"
SIZES = (25, 100, 50)
SECONDS = 20.0
CLOSED = "localStorage.setItem('mlflow.assistant.panelOpen_v1', 'false')"


def main(chromium: str) -> None:
    """Run, serve, draw."""
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        shutil.copy(ROOT / "pipelines.yaml", folder)
        for size in SIZES:
            _curvote("run", "demo", "--set", f"train.size={size}", "--project", folder)
        with listen(0) as free:
            port = free.getsockname()[1]
        own = ("ui", "--project", folder, "--port", str(port))
        command = (sys.executable, "-u", "-m", "curvote.cli", *own)
        with process(*command, stdout=subprocess.PIPE) as pages:
            link = _link(pages)
            with browser(chromium, 1600, 900) as page:
                page.open(link, SECONDS)  # it opens once
                _draw(page, link.partition("/enter/")[0], project)


def _curvote(*words: str) -> None:
    command = [sys.executable, "-m", "curvote.cli", *words]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def _link(pages: subprocess.Popen[str]) -> str:
    """Return what `curvote ui` prints, when somebody answers there."""
    assert pages.stdout
    (link,) = re.findall(r"http\S+", pages.stdout.readline())
    while True:
        try:
            urlopen(link.partition("/enter/")[0])
        except HTTPError:  # who has not come by the link is refused
            return str(link)
        except URLError:
            time.sleep(1)


def _draw(page: Page, base: str, project: Project) -> None:
    prepare_environment(project.root)
    place = f"{base}/{page_fragment(project)}"
    page.run(CLOSED)
    runs = [run.mlflow_run for run in records.load_records(project)]
    (experiment,) = re.findall(r"experiments/(\d+)", place)
    compared = (quote(json.dumps(names)) for names in (runs, [experiment]))
    addresses = {
        "list": place,
        "chart": f"{place}&compareRunsMode=CHART",
        "compare": base + "/#/compare-runs?runs={}&experiments={}".format(*compared),
    }
    for name, drawn in addresses.items():
        page.open(drawn, SECONDS)
        page.draw(PICTURES / f"mlflow-{name}.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
