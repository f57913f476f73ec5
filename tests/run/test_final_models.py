"""What is logged is what was scored: every final model, loaded elsewhere, errs as told.

Models are stored as MLflow stores them, loaded by `mlflow.pyfunc` in one fresh process,
and applied to the raw curves of the test clients of replicate 0.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mlflow.models import Model
from numpy.typing import NDArray

from curvote.chain.lookup import find_system
from curvote.chain.stage import StageContext
from curvote.flows.tracking.flavor import log_model
from curvote.flows.tracking.log import log_missing_runs
from curvote.flows.tracking.store import connect
from curvote.messages.measures import MISCLASSIFICATION
from curvote.messages.roles import publisher_test_mask, split_roles
from curvote.papers.registry import file_of, reproductions
from curvote.pipeline.config.file import ConfiguredPipeline, PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import MissingFiles, raw_files
from curvote.pipeline.run.results import RunView, final_views
from curvote.systems.labels.metrics import ACCURACY
from curvote.systems.transfer import settings, stages
from curvote.systems.utility.system import CLEAN
from tests import plain
from tests.prepared import put_databases

REPOSITORY = Path(__file__).parents[2]
# A network of 60,000 images: hours, and a mirror may hold a part of them.
LONG = {"table-1-vec-mnist"}
FEW = "clients.test=100"
# Each system, each way to judge, a source of curves and one of features.
HANDFUL = {
    "simulated": ("as_published=true", "epsilon=[5]", FEW),  # raw curves, in two ways
    # `auto` takes two ways.
    "compare": (
        "epsilon=[0.5,2]",
        "protocols=[auto, {name: mrma, project.rescale: tanh}]",
        FEW,
    ),
    "beyond-simulated": ("epsilon=[1]", "learners=[centroid]", FEW),
    "servers": ("epsilon=[1]", FEW),
    "arrivals": ("epsilon=[2]", FEW),
    "phonemes": ("epsilon=[5]", "learners=[centroid]"),
    "diabetes": ("epsilon=[1]", "learners=[centroid]"),
    "labels-circle": (
        "epsilon=[2]",
        "clients={train: 300, test: 100}",
        "grid={source.n_classes: [3]}",
        "labels.decide=balanced",
    ),
    "labels-employee": (
        "epsilon=[5]",
        "clients={train: 300, test: 100}",
        "learners=[auto]",
    ),
    "utility-stroke": (
        "epsilon=[4]",
        "clients={train: 300, test: 50}",
        "deployments={mechanisms: [pm_01], reads: [raw]}",
    ),
    "utility-phonemes": (
        "epsilon=[4]",
        "clients={public: 50, train: 300, test: 50}",
        "learners=[centroid]",
        "deployments={mechanisms: [pm_01], reads: [raw]}",
    ),
    "transfer-simulated": (
        "epsilon=[1]",
        "source.n=60",
        "source.test=80",
        "transfer.test=80",
        "grid={source.gamma: [0.5]}",
        "protocols=[{name: transfer, release: moments}]",
    ),
}
# Reads lines of [model, file of clients], writes one line of labels for each.
ELSEWHERE = """
import json, sys
import mlflow.pyfunc, numpy, pandas
for line in sys.stdin:
    uri, path = json.loads(line)
    model, clients = mlflow.pyfunc.load_model(uri), numpy.load(path)
    names = model.get_raw_model().columns
    of_curves = [name for name in names if name != "server"]
    frame = pandas.DataFrame(clients["curve"], columns=of_curves)
    if len(of_curves) < len(names):
        frame["server"] = clients["server"]
    print(json.dumps(model.predict(frame).tolist()))
"""

Array = NDArray[Any]


@dataclass(frozen=True)
class Kept:
    """A stored model, the clients it is tested on, and its score on each server's.

    A score is how often the model errs, or is ``right``.
    """

    name: str
    uri: str
    clients: Path
    labels: Array
    server: Array
    scores: list[float]
    right: bool

    def scored(self, told: list[str]) -> list[float]:
        """Return the score on each server's clients; there may be one."""
        hit = (np.array(told) == self.labels) == self.right
        return [float(np.mean(hit[self.server == k])) for k in np.unique(self.server)]


@pytest.fixture
def shipped(tmp_path: Path) -> Iterator[Project]:
    """Return a project with the shipped pipelines; the environment is put back."""
    before = dict(os.environ)
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    shutil.copy(REPOSITORY / "pipelines.yaml", tmp_path)
    (tmp_path / "data").mkdir()
    shutil.copy(REPOSITORY / "data" / "sources.toml", tmp_path / "data")
    yield Project(tmp_path)
    os.environ.clear()
    os.environ.update(before)


def test_final_models_err_as_was_scored(
    shipped: Project, databases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every system that has one; the demo's stands in MLflow's tracking store."""
    put_databases(databases, shipped)
    few = ["replicates=2", "epsilon=[2]", "learners=[cg]", "protocols=[mrma]"]
    record = plain.run(shipped, "demo", *few)
    (view,) = final_views(shipped, record)
    log_missing_runs(shipped)
    client = connect(shipped)
    experiments = [each.experiment_id for each in client.search_experiments()]
    (model,) = client.search_logged_models(experiments)
    cases = [kept(view, shipped.root / "demo.npz", model.model_uri)]
    into_folders(shipped.root / "models", monkeypatch)
    for name, overrides in HANDFUL.items():
        if here(shipped, configured(shipped, name)):
            cases += run(shipped, name, overrides)
    check(cases)


@pytest.mark.faults  # every pipeline that is shipped: minutes
@pytest.mark.parametrize("first", [True, False], ids=["project", "reproduced"])
def test_every_shipped_pipeline_keeps_what_it_scored(
    first: bool, shipped: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those in the project's own file, and those that reproductions bring along."""
    own = PipelinesFile(shipped).names()
    brought = (name for each in reproductions().values() for name in each.pipelines)
    names = own if first else dict.fromkeys(brought)
    found = [configured(shipped, name) for name in names]
    ready = [
        each.name
        for each in found
        if decides(each) and here(shipped, each) and each.name not in LONG
    ]
    into_folders(shipped.root / "models", monkeypatch)
    check([k for name in ready for k in run(shipped, name, ("epsilon=[1]",))])


def into_folders(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `save_model` write folders, in all else as MLflow would: it is quicker."""

    def log(_: None, flavor: Any, *, run_id: str, model_id: str, **given: Any) -> Any:
        flavor.save_model(path=str(place / model_id), **given)
        return SimpleNamespace(model_uri=str(place / model_id))

    monkeypatch.setattr(Model, "log", log)


def configured(project: Project, name: str) -> ConfiguredPipeline:
    """Return a shipped pipeline, wherever it stands."""
    return file_of(project, name).configure_pipeline(name)


def here(project: Project, found: ConfiguredPipeline) -> bool:
    """Say whether the raw files are here: real ones are where a mirror is set."""
    files = (raw_files(project, s.pipeline, fetch=False) for s in found.settings)
    return not any(isinstance(each, MissingFiles) for each in files)


def decides(found: ConfiguredPipeline) -> bool:
    """Say whether a study keeps a model of classes: production knows no score."""
    return found.pipeline.mode == "study" and any(
        find_system(part.settings.protocol).final_model
        and {MISCLASSIFICATION, ACCURACY}
        & {*find_system(part.settings.protocol).metrics}
        for setting in found.settings
        for part in find_system(setting.pipeline.protocol).resolve_parts(
            setting.pipeline
        )
    )


def run(project: Project, name: str, overrides: Iterable[str]) -> Iterator[Kept]:
    """Run a pipeline and yield what is kept of each cell that keeps something."""
    record = plain.run(project, name, "replicates=1", *overrides)
    for number, view in enumerate(final_views(project, record)):
        if view.system.final_model:
            called = f"{name}-{number}"
            uri = log_model("", called, view.system.final_model(view))
            yield kept(view, project.root / f"{called}.npz", uri)


def kept(view: RunView, path: Path, uri: str) -> Kept:
    """Write the raw curves of a cell's test clients, and what scores them, to files."""
    servers = view.setting("servers")
    places = [(0, k) for k in range(servers)] if servers else [(0,)]
    every = [clients_of(view, place) for place in places]
    server = np.repeat(np.arange(len(every)), [len(label) for _, label in every])
    np.savez(path, curve=np.concatenate([curve for curve, _ in every]), server=server)
    codes = np.concatenate([label for _, label in every])
    labels = np.array(view.metadata("ingest")["classes"])[codes]
    name = f"{path.stem}: {view.system.name} {view.cell}"
    right = ACCURACY in view.system.metrics
    return Kept(name, uri, path, labels, server, scores_of(view), right)


def clients_of(view: RunView, place: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the raw curves of a cell's test clients, and their labels 0 and 1."""
    rows = view.columns("ingest", "clients", place)
    if view.system.name == "transfer":
        mine = aside(view, place)
        return rows["curve"][mine], rows["label"][mine].astype(int)
    groups = rows["group"] if view.setting("source.groups") else None
    sizes = view.settings.clients.model_dump()
    n = len(rows["label"])
    seed, apart = view.settings.seed, publisher_test_mask(rows)
    mine = split_roles(seed, place[-1], n, sizes, groups, test_mask=apart)["test"]
    if view.cell["arrival"] is not None:
        mine = mine[rows["group"][mine] == view.cell["arrival"]]
    return rows["curve"][mine], rows["label"][mine].astype(int)


def aside(view: RunView, place: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the rows of the target that a transfer is tested on."""
    asked = (*settings.ALLOCATION_SETTINGS, "target", "transfer.test")
    params = {name: view.setting(name) for name in asked}
    inputs = {"project": view.artifact("project")}
    return stages.test_rows(StageContext("report", place, (1,), inputs, params, {}))


def scores_of(view: RunView) -> list[float]:
    """Return the main method's stored scores in replicate 0: one, or each server's.

    Of a model that is quantified they are those of its clean answers.
    """
    quantified = CLEAN in view.system.methods
    table: pd.DataFrame = view.read("surface" if quantified else "report", "scores")
    metric = (ACCURACY if quantified else view.system.metrics[0]).name
    first = table[(table["replicate"] == 0) & (table["metric"] == metric)]
    named = (CLEAN.name,) if quantified else view.system.main
    main = next(name for name in named if name in {*first["method"]})
    return list(first[first["method"] == main]["value"])


def check(every: list[Kept]) -> None:
    """Let a fresh process judge; each model's errors must be the stored ones."""
    asked = "".join(json.dumps([k.uri, str(k.clients)]) + "\n" for k in every)
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        input=asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    scores = {k.name: k.scored(own) for k, own in zip(every, told, strict=True)}
    assert scores == {k.name: k.scores for k in every}
    assert scores
