"""The stages of protocol online on tables in memory, arrival after arrival."""

from functools import lru_cache
from typing import Any

import numpy as np

from curvote.chain.stage import Columns, generator
from curvote.data.simulation import simulated
from curvote.systems.online.system import SYSTEM
from tests.memory import Made, Memory, do, replicates, value
from tests.stage_settings import SETTINGS

REPLICATES, PERIODS, SINCE = 12, 6, 3
PARAMS: dict[str, Any] = SETTINGS | {
    "seed": 3,
    "replicates": REPLICATES,
    "clients": {"public": 0, "train": 1200, "vote": 7200, "test": 1800},
    "protocol": "online",
    "epsilon": 5.0,
    "learner.name": "logistic",
    "train.count": 20,
    "train.size": 50,
    "online.memory": 1.0,
    "online.more": 15,
    "online.error": 0.05,
}


STAGES = {stage.name: stage for stage in SYSTEM.stages}


def did(name: str, made: Made, params: dict[str, Any], **more: Any) -> Memory:
    """Run a stage for all replicates, or at some ``places``."""
    given = {"places": replicates(REPLICATES)} | more
    return do(STAGES[name], made, params, **given)


@lru_cache
def clients(turn: float) -> Memory:
    """Return the encoded clients of a source that turns."""
    given = simulated.DRIFTING_CURVES.Parameters(points=20, turn=turn)
    n = sum(PARAMS["clients"].values())
    curves = [
        simulated.DRIFTING_CURVES.clients(
            given, n, generator(3, "ingest", "simulate", r)
        )
        for r in range(REPLICATES)
    ]
    ingest = Memory.of(simulated.DRIFTING_CURVES.facts(given), clients=curves)
    also = ("project.centre", "project.scale")
    return did("project", {"ingest": ingest}, PARAMS, also=also)


def next_arrival(shared: Made, previous: Made, params: dict[str, Any]) -> Made:
    """Do what the chain does for one more arrival."""
    made = shared | {f"{name}@previous": previous[name] for name in previous}
    for name in ("learn", "evaluate", "update", "report"):
        made[name] = did(name, made, params)
    return made


@lru_cache
def arrivals(turn: float, memory: float = 1.0) -> list[Made]:
    """Return what every stage made, arrival after arrival."""
    params = PARAMS | {"online.memory": memory}
    shared = {"project": clients(turn)}
    shared |= {"privatize": did("privatize", shared, params)}
    done: list[Made] = []
    for arrival in range(PERIODS):
        known = {name: done[-1][name] for name in ("learn", "update")} if done else {}
        done.append(next_arrival(shared, known, params | {"arrival": arrival}))
    return done


def errors(made: Made) -> np.ndarray:
    """Return the test errors of online and frozen for each replicate, (R, 2)."""
    rows = made["report"].each("scores")
    return np.array([[value(row, m) for m in ("online", "frozen")] for row in rows])


def histories(made: Made) -> list[Columns]:
    """Return the history of each replicate."""
    return made["update"].each("history")
