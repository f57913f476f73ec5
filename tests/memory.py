"""Stages on tables in memory: an artifact, and a stage run for some repetitions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from curvote.chain.stage import (
    CLIENT_BLOCK,
    Columns,
    Place,
    Rows,
    Stage,
    StageContext,
    make_rows,
    stack_rows,
    stage_functions,
)


@dataclass
class Memory:
    """An artifact in memory: the columns of each table by repetition."""

    metadata: dict[str, Any]
    tables: dict[str, dict[Place, Columns]] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: dict[str, Any], **tables: Sequence[Columns]) -> Memory:
        """Return the artifact of repetitions (0,), (1,) and so on."""
        numbered = {
            name: {(number,): rows for number, rows in enumerate(each)}
            for name, each in tables.items()
        }
        return cls(facts, numbered)

    def columns(
        self, table: str, place: Place, only: Sequence[str] | None = None
    ) -> Columns:
        """Return one repetition's columns, all or some."""
        found = self.tables[table][place]
        return found if only is None else {n: v for n, v in found.items() if n in only}

    def each(self, table: str) -> list[Columns]:
        """Return the columns of every repetition, in order."""
        return [*self.tables[table].values()]

    def count(self, table: str, place: Place) -> int:
        """Return how many shards a repetition's rows are."""
        return max(1, -(-self._length(table, place) // CLIENT_BLOCK))

    def shard(
        self, table: str, place: Place, number: int, only: Sequence[str] | None = None
    ) -> Columns:
        """Return one shard of a repetition."""
        start = number * CLIENT_BLOCK
        part = slice(start, start + CLIENT_BLOCK)
        return {n: own[part] for n, own in self.columns(table, place, only).items()}

    def shards(
        self, table: str, place: Place, only: Sequence[str] | None = None
    ) -> Iterator[Columns]:
        """Yield every shard of a repetition."""
        for number in range(self.count(table, place)):
            yield self.shard(table, place, number, only)

    def _length(self, table: str, place: Place) -> int:
        return len(next(iter(self.tables[table][place].values())))

    def pieces(self, table: str) -> Iterator[Columns]:
        """Yield the columns of every repetition."""
        yield from self.each(table)


Made = dict[str, Memory]


def replicates(n: int) -> list[Place]:
    """Return the places of ``n`` repetitions of a study."""
    return [(number,) for number in range(n)]


def value(scores: Columns, method: str, metric: str = "misclassification") -> float:
    """Return what the table ``scores`` of one repetition tells of a method."""
    (row,) = np.flatnonzero((scores["method"] == method) & (scores["metric"] == metric))
    return float(scores["value"][row])


def here(
    stage: Stage,
    made: Mapping[str, Memory],
    params: Mapping[str, Any],
    place: Place = (0,),
    sizes: Place = (1,),
    also: Sequence[str] = (),
) -> StageContext:
    """Return a repetition of a stage, with the inputs and parameters it declares.

    ``also`` are parameters that it reads where others have these values. Of inputs from
    the arrival before, only those that are there.
    """
    inputs = {name: made[name] for name in stage.inputs if name in made}
    own = {name: params[name] for name in (*stage.params, *also)}
    functions = stage_functions(stage.module)
    facts = functions.metadata(inputs, own) if hasattr(functions, "metadata") else {}
    told = json.loads(json.dumps(facts))
    return StageContext(stage.name, place, sizes, inputs, own, told)


def do(
    stage: Stage,
    made: Mapping[str, Memory],
    params: Mapping[str, Any],
    places: Sequence[Place] = ((0,),),
    sizes: Place = (1,),
    also: Sequence[str] = (),
    block: int = 1000,
) -> Memory:
    """Run a stage for some repetitions, so many at a time."""
    first = here(stage, made, params, sizes=sizes, also=also)
    tables: dict[str, dict[Place, Columns]] = {t.name: {} for t in stage.tables}
    for start in range(0, len(places), block):
        part = places[start : start + block]
        rows = _rows(stage, [first.at_place(place) for place in part])
        for place, own in zip(part, rows, strict=True):
            for name, columns in own.items():
                tables[name][place] = columns
    return Memory(first.metadata, tables)


def _rows(stage: Stage, every: Sequence[StageContext]) -> Iterator[Rows]:
    functions = stage_functions(stage.module)
    with threadpool_limits(limits=1):  # as the chain does
        own = hasattr(functions, "batch")
        made = (stack_rows([*make_rows(functions, one)]) for one in every)
        yield from functions.batch(every) if own else made
