"""The record and the results of a small run, as tracking gets them."""

import json
from dataclasses import replace
from typing import Any

from curvote.pipeline.config.project import Project
from curvote.pipeline.store.artifacts import MANIFEST, artifact
from curvote.pipeline.store.records import RunRecord

EPSILONS = (0.5, 2.0)
METHODS = ("weak", "mrma")
CLIENTS = {"public": 10, "train": 40, "vote": 80, "test": 30}
CONFIG = {
    "protocol": "mrma",
    "seed": 7,
    "epsilon": list(EPSILONS),
    "source": {"name": "simulated"},
    "clients": CLIENTS,
    "project": {"basis": "bspline", "size": 4},
    "train": {"count": 5, "size": 50},
    "privatize": {"mechanism": "laplace"},
    "aggregate": {"cutoff": 0.8},
    "learners": ["centroid", "lda"],
    "replicates": 3,
}

# What the stages of `mrma` read; a release's number is nobody's setting.
READ: dict[str, dict[str, Any]] = {
    "ingest": {"source": {"name": "simulated"}, "clients": CLIENTS, "seed": 7},
    "project": {"project.size": 4, "project.centre": 0.0, "project.order": None},
    "privatize": {"privatize.mechanism": "laplace", "privatize.params": {}},
    "train": {"train.size": 50, "learner.name": "centroid", "number": 1},
    "aggregate": {"aggregate.cutoff": 0.8, "label": "mrma"},
}
FACTS: dict[str, dict[str, Any]] = {"project": {"d": 4, "bayes_error": 0.1}}


def _step(stage: str, key: str, **cell: Any) -> dict[str, Any]:
    return {
        "stage": stage,
        "cell": cell,
        "key": key,
        "action": {"ingest": "reuse", "project": "copy"}.get(stage, "run"),
        "reason": "",
    }


def make_record(name: str = "one", **changes: Any) -> RunRecord:
    """A completed run of two epsilons and one of its learners, with ``changes``."""
    steps = [_step("ingest", "i"), _step("project", "p")]
    for epsilon in EPSILONS:
        shared = {"protocol": "mrma", "epsilon": epsilon}
        steps.append(_step("privatize", f"v{epsilon}", **shared))
        steps.append(_step("train", f"t{epsilon}", **shared, learner="centroid"))
        steps.append(_step("aggregate", f"a{epsilon}", **shared, learner="centroid"))
    record = RunRecord(
        id=name,
        pipeline="demo",
        started="2026-01-05T06:00:00+00:00",
        finished="2026-01-05T06:01:00+00:00",
        overrides=[],
        config=CONFIG,
        steps=steps,
        status="completed",
    )
    return replace(record, **changes)


def make_rows() -> list[dict[str, Any]]:
    """Each method's score in each cell, the majority's in each epsilon."""
    pairs = [(method, "centroid") for method in METHODS] + [("majority", None)]
    return [
        {
            "protocol": "mrma",
            "epsilon": epsilon,
            "learner": learner,
            "method": method,
            "metric": "misclassification",
            "value": 0.25,
            "se": None if method == "majority" else 0.01,
        }
        for epsilon in EPSILONS
        for method, learner in pairs
    ]


def store(project: Project, record: RunRecord) -> None:
    """Write the manifests of a run's artifacts, without any table."""
    for step in record.steps:
        stage = step["stage"]
        inputs = {} if stage == "ingest" else {"ingest": "i"}
        components = {"params": READ[stage], "inputs": inputs}
        manifest = {"components": components, "facts": FACTS.get(stage, {})}
        folder = artifact(project, stage, step["key"]).path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).write_text(json.dumps(manifest))
