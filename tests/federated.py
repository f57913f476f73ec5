"""The stages of many servers on tables in memory, each given what it declares."""

from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from curvote.chain.stage import Columns, generator
from curvote.data.simulation import simulated
from curvote.systems.federated.system import SYSTEM
from tests.memory import Memory, do, replicates
from tests.stage_settings import SETTINGS

BY_NAME = {stage.name: stage for stage in SYSTEM.stages}
VALUES: dict[str, Any] = SETTINGS | {
    "protocol": "federated",
    "clients": {"public": 0, "train": 200, "vote": 400, "test": 200},
    "seed": 7,
    "epsilon": 1.0,
    "learner.name": "centroid",
    "train.count": 15,
    "train.size": 40,
    "federation.split": "clients",
    "federation.cutoff": 0.8,
    "federation.faults": {},
}


class Study:
    """A study of some replicates of some servers, computed stage by stage."""

    def __init__(
        self,
        replicates: int,
        servers: tuple[int, int, int],
        block: int = 10,
        **changes: Any,
    ) -> None:
        self.source = simulated.SERVER_CURVES.Parameters(servers=servers, points=20)
        self.replicates, self.count, self.block = replicates, sum(servers), block
        named = {name.replace("__", "."): value for name, value in changes.items()}
        counts = {"servers": self.count, "replicates": replicates}
        self.values = VALUES | counts | named
        self.made: dict[str, Memory] = {"project": self._projected()}

    def run(self, **changes: Any) -> dict[str, Memory]:
        """Return every stage's tables with other settings from ``evaluate`` on."""
        named = {name.replace("__", "."): value for name, value in changes.items()}
        values = self.values | named
        made = dict(self.trained)
        for name in list(BY_NAME)[4:]:
            made[name] = self._stage(name, made, values)
        return made

    @cached_property
    def trained(self) -> dict[str, Memory]:
        """The stages that no way to split the voters changes."""
        made = dict(self.made)
        for name in ("privatize", "train"):
            made[name] = self._stage(name, made, self.values)
        return made

    def scores(self, made: dict[str, Memory], method: str) -> np.ndarray:
        """Return the errors of a method, (replicates, servers)."""
        return np.array([_errors(row, method) for row in made["report"].each("scores")])

    @property
    def sizes(self) -> tuple[int, int]:
        """How many replicates there are, and servers in each."""
        return self.replicates, self.count

    @property
    def places(self) -> list[tuple[int, int]]:
        """One for each server of each replicate."""
        return list(product(*map(range, self.sizes)))

    def _stage(
        self, name: str, made: dict[str, Memory], values: dict[str, Any]
    ) -> Memory:
        stage = BY_NAME[name]
        places = replicates(self.replicates) if stage.index else self.places
        also = ("project.centre", "project.scale") if name == "project" else ()
        return do(stage, made, values, places, self.sizes, also, self.block)

    def _projected(self) -> Memory:
        n = sum(self.values["clients"].values())
        clients = {place: self._clients(place, n) for place in self.places}
        facts = simulated.SERVER_CURVES.facts(self.source)
        ingested = Memory(facts, {"clients": clients})
        return self._stage("project", {"ingest": ingested}, self.values)

    def _clients(self, place: tuple[int, int], n: int) -> dict[str, Any]:
        replicate, server = place
        number = replicate * self.count + server
        rng = generator(self.values["seed"], "ingest", "simulate", number)
        return simulated.SERVER_CURVES.clients(self.source, n, rng, server)


def _errors(scores: Columns, method: str) -> np.ndarray:
    """Return the error of a method at each server."""
    own = (scores["method"] == method) & (scores["metric"] == "misclassification")
    return np.asarray(scores["value"][own])
