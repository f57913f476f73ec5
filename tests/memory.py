"""Stages on tables in memory: an artifact, and a stage run for some repetitions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from curvote.chain.stage import Columns, Here, Place, Stage


@dataclass
class Memory:
    """An artifact in memory: the columns of each table by repetition."""

    facts: dict[str, Any]
    tables: dict[str, dict[Place, Columns]]

    @classmethod
    def of(cls, facts: dict[str, Any], **tables: Sequence[Columns]) -> Memory:
        """Return the artifact of repetitions (0,), (1,) and so on."""
        numbered = {
            name: {(number,): rows for number, rows in enumerate(each)}
            for name, each in tables.items()
        }
        return cls(facts, numbered)

    def columns(self, table: str, place: Place) -> Columns:
        """Return one repetition's columns."""
        return self.tables[table][place]

    def each(self, table: str) -> list[Columns]:
        """Return the columns of every repetition, in order."""
        return [*self.tables[table].values()]

    def pieces(self, table: str) -> Iterator[Columns]:
        """Yield the columns of every repetition."""
        yield from self.each(table)


Made = dict[str, Memory]


def here(
    stage: Stage,
    made: Mapping[str, Memory],
    params: Mapping[str, Any],
    place: Place = (0,),
    sizes: Place = (1,),
) -> Here:
    """Return a repetition of a stage, with the inputs and parameters it declares.

    Of inputs from the arrival before, only those that are there.
    """
    inputs = {name: made[name] for name in stage.inputs if name in made}
    own = {name: params[name] for name in stage.params}
    module = import_module(stage.module)
    facts = module.facts(inputs, own) if hasattr(module, "facts") else {}
    told = json.loads(json.dumps(facts))
    return Here(stage.name, place, sizes, inputs, own, told)


def do(
    stage: Stage,
    made: Mapping[str, Memory],
    params: Mapping[str, Any],
    places: Sequence[Place] = ((0,),),
    sizes: Place = (1,),
) -> Memory:
    """Run a stage for some repetitions."""
    first = here(stage, made, params, sizes=sizes)
    every = [first.at(place) for place in places]
    module = import_module(stage.module)
    rows = module.block(every) if hasattr(module, "block") else map(module.one, every)
    tables: dict[str, dict[Place, Columns]] = {t.name: {} for t in stage.tables}
    for place, own in zip(places, rows, strict=True):
        for name, columns in own.items():
            tables[name][place] = columns
    return Memory(first.facts, tables)
