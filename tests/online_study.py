"""The stages of protocol online on tables in memory, arrival after arrival."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from curvote.chain.stage import Columns
from curvote.chain.streams import generator
from curvote.datasets import drifting
from curvote.protocols.online import evaluate, learn, privatize, score, update
from curvote.protocols.stage import Tables
from curvote.protocols.stages import project

REPLICATES, PERIODS, SINCE = 12, 6, 3
PARAMS: dict[str, Any] = {
    "seed": 3,
    "clients": {"public": 0, "train": 1200, "vote": 7200, "test": 1800},
    "source.groups": None,
    "protocol": "online",
    "label": "online",
    "epsilon": 5.0,
    "project.basis": "bspline",
    "project.size": 4,
    "project.order": 4,
    "project.coordinates": "coefficients",
    "project.rescale": "tanh",
    "project.centre": 0.0,
    "project.scale": 1.0,
    "project.judge": "coefficients",
    "privatize.mechanism": "laplace",
    "privatize.params": {},
    "privatize.label_share": "equal",
    "learner.name": "logistic",
    "learner.params": {},
    "learner.label": "logistic",
    "train.count": 20,
    "train.size": 50,
    "aggregate.cutoff": 0.8,
    "aggregate.weights": "excess",
    "aggregate.when_none_pass": "soft",
    "online.memory": 1.0,
    "online.more": 15,
    "online.drop": 3.0,
}


@dataclass
class Plain:
    """An artifact in memory."""

    facts: dict[str, Any]
    tables: Tables

    def columns(self, table: str, replicate: int) -> Columns:
        return self.tables[table][replicate]


Made = dict[str, Plain]


def do(module: Any, inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Plain:
    """Run a stage for all replicates."""
    facts = module.facts(inputs, params)
    return Plain(facts, module.block(range(REPLICATES), inputs, params, facts))


@lru_cache
def clients(turn: float) -> Plain:
    """Return the encoded clients of a source that turns."""
    source, n = (
        drifting.Parameters(points=20, turn=turn),
        sum(PARAMS["clients"].values()),
    )
    curves = [
        drifting.clients(source, n, generator(3, "ingest", "simulate", r))
        for r in range(REPLICATES)
    ]
    ingest = Plain(drifting.facts(source), {"clients": curves})
    return do(project, {"ingest": ingest}, PARAMS)


def next_arrival(shared: Made, previous: Made, params: dict[str, Any]) -> Made:
    """Do what the chain does for one more arrival."""
    made = shared | {f"{name}@previous": previous[name] for name in previous}
    for name, module in (("learn", learn), ("evaluate", evaluate), ("update", update)):
        made[name] = do(module, made, params)
    return made | {"report": do(score, made, params)}


@lru_cache
def arrivals(turn: float, memory: float = 1.0) -> list[Made]:
    """Return what every stage made, arrival after arrival."""
    params = PARAMS | {"online.memory": memory}
    shared = {"project": clients(turn)}
    shared |= {"privatize": do(privatize, shared, params)}
    done: list[Made] = []
    for arrival in range(PERIODS):
        known = {name: done[-1][name] for name in ("learn", "update")} if done else {}
        done.append(next_arrival(shared, known, params | {"arrival": arrival}))
    return done


def errors(made: Made) -> np.ndarray:
    """Return the test errors of online and frozen for each replicate, (R, 2)."""
    rows = made["report"].tables["scores"]
    return np.array([row["misclassification"] for row in rows])


def histories(made: Made) -> list[Columns]:
    """Return the history of each replicate."""
    return made["update"].tables["history"]
