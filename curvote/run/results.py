"""What a completed run says of its cells: their artifacts, outcomes and models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from curvote.chain.axis import Cell, Value
from curvote.chain.lookup import system
from curvote.chain.stage import Columns, Facts, Place
from curvote.chain.system import Part, System
from curvote.named_columns import OfRecords
from curvote.run.config.parts import belonging, part_of, parts_of
from curvote.run.config.settings import dotted
from curvote.run.history import RunRecord
from curvote.run.plan.expand import values_of
from curvote.run.plan.stages import ends_of
from curvote.run.project import Project
from curvote.run.store.artifacts import Artifact, artifact, sound


@dataclass(frozen=True)
class RunView:
    """One cell of a run, as its system sees it (`curvote.chain.view.View`)."""

    project: Project
    record: RunRecord
    cell: Cell
    part: Part

    @property
    def settings(self) -> Any:
        """The resolved settings of the cell's system."""
        return self.part.settings

    @property
    def system(self) -> System:
        """The system that made the cell."""
        return system(self.settings.protocol)

    @cached_property
    def _values(self) -> dict[str, Any]:
        return values_of(self.settings, self.cell)

    def without(self, *axes: str) -> RunView:
        """Return the view of the wider cell that has no value on some axes."""
        return replace(self, cell=self.cell.with_(**dict.fromkeys(axes)))

    def at(self, **values: Value) -> RunView:
        """Return the view of the narrower cell with these values on its axes."""
        return replace(self, cell=self.cell.with_(**values))

    def place(self, replicate: int = 0) -> Place:
        """Return where the tables of a replicate stand, the first of several."""
        return replicate, *[0] * (len(self.system.index) - 1)

    def setting(self, path: str) -> Any:
        """Return the value of a dotted key as the stages of the cell read it."""
        return dotted(self._values, path)

    def holds(self, stage: str, table: str = "") -> bool:
        """Say whether the cell has the stage, and the stage that table."""
        there = self.cell.narrowest(dict(self.record.keys(stage))) is not None
        return there and (not table or self.artifact(stage).holds(table))

    def artifact(self, stage: str) -> Artifact:
        """Return the artifact of a stage that serves the cell."""
        return find(self.project, self.record, stage, self.cell)

    def facts(self, stage: str) -> Facts:
        """Return the facts that a stage recorded."""
        return self.artifact(stage).facts

    def every_facts(self) -> Iterator[Facts]:
        """Yield the facts of each stage of the cell's system."""
        for name in dict.fromkeys(s.name for s in self.system.every_stage):
            if self.holds(name):
                yield self.facts(name)

    def sent_facts(self) -> Iterator[Facts]:
        """Yield the facts of each stage at which something left somebody."""
        for stage in self.system.production:
            if stage.message and self.holds(stage.name):
                yield self.facts(stage.name)

    def columns(self, stage: str, table: str, place: Place = (0,)) -> Columns:
        """Return the columns of one repetition of a table."""
        return self.artifact(stage).columns(table, place)

    def count(self, stage: str) -> int:
        """Return how many rows the tables of a stage have in all."""
        return self.artifact(stage).rows

    def read(self, stage: str, table: str) -> pd.DataFrame:
        """Return a whole table, with its index."""
        return pd.DataFrame(self.artifact(stage).table(table).to_pandas())


def find(project: Project, record: RunRecord, stage: str, cell: Cell) -> Artifact:
    """Return the artifact of a stage that serves ``cell`` in a run."""
    return sound(project, stage, _serving(record, stage, cell))


def facts_of(project: Project, record: RunRecord, stage: str, cell: Cell) -> Facts:
    """Return the facts of such an artifact; its tables are neither read nor checked."""
    return artifact(project, stage, _serving(record, stage, cell)).facts


def _serving(record: RunRecord, stage: str, cell: Cell) -> str:
    keys = dict(record.keys(stage))
    return keys[cell.narrowest(keys) or cell]


def views(project: Project, record: RunRecord) -> list[RunView]:
    """Return the cells of a run that end in something: the narrowest ones.

    What another stage reads is no end, and neither is a cell that only part of a
    system's axes tell apart, unless nothing is.
    """
    parts = list(parts_of(record.config))
    last = {name for _, part in parts for name in ends_of(part.settings)}
    done = (step["cell"] for step in record.steps if step["stage"] in last)
    every = dict.fromkeys(map(Cell.of, done))
    ends = [c for c in every if not any(c != o and c.serves(o) for o in every)]
    return [RunView(project, record, cell, belonging(parts, cell)) for cell in ends]


def systems_of(record: RunRecord) -> list[System]:
    """Return the systems of a run, each once."""
    return each_once(part for _, part in parts_of(record.config))


def each_once(parts: Iterable[Part]) -> list[System]:
    """Return the systems of some parts, each once."""
    every = (system(part.settings.protocol) for part in parts)
    return list({one.name: one for one in every}.values())


def outcomes(project: Project, record: RunRecord) -> dict[Cell, dict[str, float]]:
    """Return what production knows of each cell, as its system says."""
    found = ((view.cell, view.system.outcome(view)) for view in views(project, record))
    return {cell: dict(outcome) for cell, outcome in found if outcome}


def notes(project: Project, record: RunRecord) -> list[str]:
    """Return what each system of a run tells its reader, a line each."""
    every: dict[str, list[RunView]] = {}
    for view in views(project, record):
        every.setdefault(view.system.name, []).append(view)
    told = (line for name, own in every.items() for line in system(name).notes(own))
    return list(dict.fromkeys(told))


def final_model(project: Project, record: RunRecord, cell: Cell) -> Any:
    """Return the model to keep of a cell's first replicate, None where there is none.

    It is what the main method was scored with: any object with ``predict``. One of raw
    records takes a table as training did.
    """
    view = RunView(project, record, cell, part_of(record.config, cell))
    model = view.system.final(view) if view.system.final else None
    if isinstance(model, OfRecords):
        from curvote.datasets.own.raw_records import RawRecords

        model.form = RawRecords.of(view)
    return model
