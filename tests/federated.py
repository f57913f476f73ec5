"""The stages of many servers on tables in memory, each given what it declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from curvote.chain.streams import generator
from curvote.datasets import simulated_servers
from curvote.federation.system import STAGES
from curvote.protocols.stages import project

BY_NAME = {stage.name: stage for stage in STAGES}
VALUES: dict[str, Any] = {
    "protocol": "federated",
    "label": "federated",
    "clients": {"public": 0, "train": 200, "vote": 400, "test": 200},
    "source.groups": None,
    "seed": 7,
    "epsilon": 1.0,
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
    "learner.name": "centroid",
    "learner.label": "centroid",
    "learner.params": {},
    "train.count": 15,
    "train.size": 40,
    "aggregate.cutoff": 0.8,
    "aggregate.when_none_pass": "soft",
    "aggregate.weights": "excess",
    "federation.split": "clients",
    "federation.cutoff": 0.8,
    "federation.faults": {},
}


class Memory:
    """A source that a stage reads: facts, and tables by instance."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.tables: dict[str, dict[int, dict[str, Any]]] = {}

    def columns(self, table: str, replicate: int) -> dict[str, Any]:
        """Return the columns of one instance."""
        return self.tables[table][replicate]

    def fill(self, made: dict[str, list[Any]], instances: Sequence[int]) -> None:
        """Add what a block made for these instances."""
        for name, columns in made.items():
            rows = zip(instances, columns, strict=True)
            self.tables.setdefault(name, {}).update(rows)


class Study:
    """A study of some replicates of some servers, computed stage by stage."""

    def __init__(
        self,
        replicates: int,
        servers: tuple[int, int, int],
        block: int = 10,
        **changes: Any,
    ) -> None:
        self.source = simulated_servers.Parameters(servers=servers, points=20)
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
        for name in list(BY_NAME)[2:]:
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
        rows = [made["report"].columns("scores", r) for r in range(self.replicates)]
        return np.array(
            [row["misclassification"][row["method"] == method] for row in rows]
        )

    @property
    def instances(self) -> range:
        """One for each server of each replicate."""
        return range(self.replicates * self.count)

    def _stage(
        self, name: str, made: dict[str, Memory], values: dict[str, Any]
    ) -> Memory:
        stage = BY_NAME[name]
        module = import_module(stage.module)
        params = {key: values.get(key) for key in stage.params}
        inputs = {source: made[source] for source in stage.inputs}
        memory = Memory(module.facts(inputs, params))
        every = range(self.replicates) if name == "report" else self.instances
        for part in self._parts(every):
            memory.fill(module.block(part, inputs, params, memory.facts), part)
        assert set(memory.tables) == set(stage.tables)
        return memory

    def _projected(self) -> Memory:
        ingested = Memory(simulated_servers.facts(self.source))
        memory = Memory(project.facts({"ingest": ingested}, self.values))
        n = sum(self.values["clients"].values())
        for part in self._parts(self.instances):
            ingested.tables["clients"] = {i: self._clients(i, n) for i in part}
            found = {"ingest": ingested}
            memory.fill(project.block(part, found, self.values, memory.facts), part)
        return memory

    def _parts(self, every: range) -> Iterator[range]:
        with threadpool_limits(limits=1):  # as the chain does
            for start in range(0, len(every), self.block):
                yield every[start : start + self.block]

    def _clients(self, instance: int, n: int) -> dict[str, Any]:
        rng = generator(self.values["seed"], "ingest", "simulate", instance)
        return simulated_servers.clients(self.source, n, rng, instance)
