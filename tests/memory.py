"""Stages on tables in memory, each given what it declares and no more."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from curvote.chain.stage import Columns, Here, Place, Rows, Stage


@dataclass
class Memory:
    """A source that a stage reads: facts, and each table by repetition."""

    facts: dict[str, Any]
    tables: dict[str, dict[Place, Columns]] = field(default_factory=dict)

    def columns(self, table: str, place: Place) -> Columns:
        """Return the columns of one repetition."""
        return self.tables[table][place]

    def each(self, table: str) -> list[Columns]:
        """Return the columns of every repetition, in order."""
        return list(self.tables[table].values())


def value(scores: Columns, method: str, metric: str = "misclassification") -> float:
    """Return what the table ``scores`` of one repetition tells of a method."""
    (row,) = np.flatnonzero((scores["method"] == method) & (scores["metric"] == metric))
    return float(scores["value"][row])


def source(facts: dict[str, Any], **tables: Sequence[Columns]) -> Memory:
    """Return a source whose tables are given replicate after replicate."""
    numbered = {
        name: {(i,): columns for i, columns in enumerate(every)}
        for name, every in tables.items()
    }
    return Memory(facts, numbered)


def do(
    stage: Stage,
    made: Mapping[str, Memory],
    values: Mapping[str, Any],
    sizes: Place,
    *,
    places: Sequence[Place] | None = None,
    block: int = 1000,
    also: Sequence[str] = (),
) -> Memory:
    """Return what a stage makes of its inputs, everywhere or at some ``places``.

    ``also`` are parameters that it reads for these values only. Inputs of a value
    before that are not there are left out, as in a chain.
    """
    module = import_module(stage.module)
    inputs = {n: made[n] for n in stage.inputs if n in made or "@" not in n}
    params = {name: values[name] for name in (*stage.params, *also)}
    told = module.facts(inputs, params) if hasattr(module, "facts") else {}
    memory = Memory(json.loads(json.dumps(told)))
    given = (stage.name, sizes, inputs, params, memory.facts)
    every = list(places or product(*map(range, sizes)))
    for start in range(0, len(every), block):
        part = every[start : start + block]
        for place, rows in zip(part, _rows(module, part, *given), strict=True):
            for name, columns in rows.items():
                memory.tables.setdefault(name, {})[place] = columns
    assert {*memory.tables} == {table.name for table in stage.tables}
    return memory


def _rows(
    module: Any, part: Sequence[Place], name: str, sizes: Place, *given: Any
) -> Iterator[Rows]:
    heres = [Here(name, place, sizes, *given) for place in part]
    with threadpool_limits(limits=1):  # as the chain does
        if hasattr(module, "one"):
            yield from map(module.one, heres)
        else:
            yield from module.block(heres)
