"""The toy in a copy of the product: every command once, and what MLflow then holds."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.house import ROOT, House, copied, driven, run_of, with_system
from tests.processes import processes_of, until

TOWN = """\
pipelines:
  town:
    protocol: toy
    source: {name: simulated, points: 20}
    parties: {people: 600, shops: 200, test: 300}
    levels:
      careful: {people: 2, shops: 1}
      open: {people: 20, shops: 8}
    shrink: [0, 0.5]
    replicates: 4
    seed: 3
"""
FIT = "curvote/toy/fit.py"
WIDER = {str(FIT): ["minlength=K) + 1", "minlength=K) + 2"]}
QUICKLY = ["--samples", "2000", "--workers", "1"]
CELLS = 4
STEPS = 1 + 2 + 2 + CELLS + CELLS

# Reads what MLflow holds, and lets the model that it keeps judge the test records.
READER = """
import json, sys
from pathlib import Path
from curvote.flows.environment import prepare_environment
prepare_environment(Path.cwd())
import mlflow, pandas as pd
from mlflow import MlflowClient
from curvote.pipeline.config.project import Project
from curvote.pipeline.run import results
from curvote.pipeline.store import records
from curvote.toy.tables import CLASSES, PARTIES
project = Project(Path.cwd())
record = records.completed_run(project, "town")
client = MlflowClient()
(experiment,) = [e for e in client.search_experiments() if e.name == "town"]
runs = client.search_runs([experiment.experiment_id])
told = [{"id": r.info.run_id, "name": r.info.run_name, "params": r.data.params,
         "parent": r.data.tags.get("mlflow.parentRunId"), "metrics": r.data.metrics,
         "tags": r.data.tags, "record": r.data.tags.get("curvote.run")}
        for r in runs]
chart = {name: [(m.step, m.value) for m in client.get_metric_history(r["id"], name)]
         for r in told if r["record"] == record.id for name in r["metrics"]}
scored = []
for r in told:
    if r["parent"] and "model_uri" in r["tags"]:
        cell = next(v for v in results.final_views(project, record)
                    if str(v.cell["level"]) == r["params"]["level"]
                    and f'{v.cell["shrink"]:g}' == r["params"]["shrink"])
        town = cell.columns("gather", "town", (0,))
        test = town["party"] == PARTIES.index("test")
        frame = pd.DataFrame(town["place"][test], columns=["east", "north"])
        found = mlflow.pyfunc.load_model(r["tags"]["model_uri"]).predict(frame)
        names = [CLASSES[k] for k in town["colour"][test]]
        scores = cell.columns("report", "scores", (0,))
        stored = dict(zip(zip(scores["method"], scores["metric"]), scores["value"]))
        scored.append([float((found == names).mean()), stored["weighted", "accuracy"]])
json.dump({"runs": told, "chart": chart, "scored": scored, "record": record.id},
          sys.stdout)
"""


@dataclass(frozen=True)
class Town:
    """The project of the copy, and what each command in it gave."""

    house: House
    told: dict[str, dict[str, Any]]

    def json(self, name: str) -> Any:
        """Return the JSON document of a command that ended well."""
        assert self.told[name]["code"] == 0, self.told[name]["err"]
        return json.loads(self.told[name]["out"])


def _kill_in_the_middle(house: House) -> None:
    """Start a run, and kill it as soon as people have answered."""
    answers = house.project / "data" / "artifacts" / "ask"
    with house.start("run", "town", "--block", "1") as process:
        over = until(lambda: _there(answers) or process.poll() is not None, 300)
        os.kill(process.pid, signal.SIGKILL)
        _, err = process.communicate()
    assert over
    assert process.returncode == -signal.SIGKILL, err
    assert until(lambda: not processes_of(house.project), 15), "a process was left"


def _there(folder: Path) -> list[Path]:
    return list(folder.glob("[!.]*"))


def _built(root: Path) -> House:
    house = copied(root)
    with_system(house, ROOT / "tests" / "toy", "toy")
    (house.project / "pipelines.yaml").write_text(TOWN)
    return house


def run_under_prefect(root: Path) -> Town:
    """Run the toy by its command: killed, run again, one stage of it run anew."""
    house = _built(root)
    _kill_in_the_middle(house)
    named = {
        "resumed": ["run", "town", "--block", "1"],
        "scores": ["scores", "town", "--json"],
        "only": ["run", "town", "--only", "fit_models"],
    }
    told = driven(house, *named.values())
    return Town(house, dict(zip(named, told, strict=True)))


def run_all(root: Path) -> Town:
    """Run the toy without Prefect, and then every command that reads a run."""
    house = _built(root)
    code = {str(house.root / file): change for file, change in WIDER.items()}
    back = {file: [new, old] for file, (old, new) in code.items()}
    named: dict[str, Any] = {
        "run": run_of("town"),
        "scores": ["scores", "town", "--json"],
        "table": ["scores", "town"],
        "again": ["plan", "town", "--json"],
        "level": ["plan", "town", "--json", "--set", "levels.open.shops=4"],
        "edited": code,
        "code": ["plan", "town", "--json"],
        "restored": back,
        "audit": ["audit", "--pipeline", "town", "--json", *QUICKLY],
        "page": ["report", "town"],
        "colour": ["colour", "town", "0.5", "0.1"],
        "empty": ["plan", "town", "--set", "shrink=[]"],
        "altered": {"data/artifacts/fit_models/*/models.parquet": "alter"},
        "refused": ["colour", "town", "0.5", "0.1"],
        "foreign": ["plan", "town", "--set", "votes.size=3"],
    }
    steps = iter(driven(house, *named.values()))
    told = {n: next(steps) for n, step in named.items() if not isinstance(step, dict)}
    return Town(house, told)


def read_mlflow(town: Town) -> Any:
    """Read MLflow in a fresh process that knows no more than its user."""
    done = subprocess.run(
        [sys.executable, "-c", READER],
        cwd=town.house.project,
        env=town.house.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)
