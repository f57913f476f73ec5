"""The record and the results of a small run, as tracking gets them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from curvote.run.history import RunRecord

EPSILONS = (0.5, 2.0)
METHODS = ("weak", "mrma")
CONFIG = {
    "protocol": "mrma",
    "seed": 7,
    "epsilon": list(EPSILONS),
    "source": {"name": "simulated"},
    "project": {"basis": "bspline", "size": 4},
    "train": {"count": 5, "size": 50},
    "privatize": {"mechanism": "laplace"},
    "aggregate": {"cutoff": 0.8},
    "schedule": None,
}


def _step(stage: str, key: str, **cell: Any) -> dict[str, Any]:
    return {
        "stage": stage,
        "cell": {"protocol": None, "epsilon": None, "learner": None, **cell},
        "key": key,
        "action": "run",
    }


def make_record(name: str = "one", **changes: Any) -> RunRecord:
    """A completed run of two epsilons and one learner, with ``changes``."""
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
            "misclassification": 0.25,
            "se": None if method == "majority" else 0.01,
        }
        for epsilon in EPSILONS
        for method, learner in pairs
    ]
