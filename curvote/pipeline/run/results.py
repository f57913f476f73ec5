"""Results of a completed run by cell: artifacts, outcomes, notes, models and alarms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from curvote.chain.axis import Cell, Value
from curvote.chain.lookup import find_system
from curvote.chain.stage import Columns, Metadata, Place
from curvote.chain.system import Part, System
from curvote.curves.columns import RecordPredictor
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.settings import (
    dotted_value,
    find_part,
    labelled_parts,
    part_of_cell,
)
from curvote.pipeline.plan.expand import cell_values, final_stages
from curvote.pipeline.store.artifacts import Artifact, artifact, checked_artifact
from curvote.pipeline.store.history import RunRecord


@dataclass(frozen=True)
class RunView:
    """One cell of a run, as its system sees it (`curvote.chain.system.View`)."""

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
        return find_system(self.settings.protocol)

    @cached_property
    def _resolved(self) -> dict[str, Any]:
        return cell_values(self.settings, self.cell)

    def without(self, *axes: str) -> RunView:
        """Return the view of the wider cell that has no value on some axes."""
        return replace(self, cell=self.cell.with_values(**dict.fromkeys(axes)))

    def at(self, **values: Value) -> RunView:
        """Return the view of the narrower cell with these values on its axes."""
        return replace(self, cell=self.cell.with_values(**values))

    def place(self, replicate: int = 0) -> Place:
        """Return the index of a replicate's tables; further indices are 0."""
        return replicate, *[0] * (len(self.system.index) - 1)

    def setting(self, path: str) -> Any:
        """Return the value of a dotted key as the stages of the cell read it."""
        return dotted_value(self._resolved, path)

    def holds(self, stage: str, table: str = "") -> bool:
        """Return whether the cell has a stage, and the stage a table."""
        has_stage = (
            self.cell.most_specific(dict(self.record.stage_keys(stage))) is not None
        )
        return has_stage and (not table or self.artifact(stage).has_table(table))

    def artifact(self, stage: str) -> Artifact:
        """Return the artifact of a stage that serves the cell."""
        return find_artifact(self.project, self.record, stage, self.cell)

    def metadata(self, stage: str) -> Metadata:
        """Return the facts that a stage recorded."""
        return self.artifact(stage).metadata

    def every_facts(self) -> Iterator[Metadata]:
        """Yield the metadata of each stage of the cell's system."""
        for name in dict.fromkeys(s.name for s in self.system.all_stages):
            if self.holds(name):
                yield self.metadata(name)

    def sent_facts(self) -> Iterator[Metadata]:
        """Yield the metadata of each stage at which a message was sent."""
        for stage in self.system.production:
            if stage.message and self.holds(stage.name):
                yield self.metadata(stage.name)

    def columns(self, stage: str, table: str, place: Place = (0,)) -> Columns:
        """Return the columns of one repetition of a table."""
        return self.artifact(stage).columns(table, place)

    def count(self, stage: str) -> int:
        """Return how many rows the tables of a stage have in all."""
        return self.artifact(stage).n_rows

    def read(self, stage: str, table: str) -> pd.DataFrame:
        """Return a whole table, with its index."""
        return pd.DataFrame(self.artifact(stage).table(table).to_pandas())


def find_artifact(
    project: Project, record: RunRecord, stage: str, cell: Cell
) -> Artifact:
    """Return the artifact of a stage that serves ``cell`` in a run."""
    return checked_artifact(project, stage, _serving_key(record, stage, cell))


def stage_metadata(
    project: Project, record: RunRecord, stage: str, cell: Cell
) -> Metadata:
    """Return a stage's metadata without reading or checking its tables."""
    return artifact(project, stage, _serving_key(record, stage, cell)).metadata


def _serving_key(record: RunRecord, stage: str, cell: Cell) -> str:
    keys = dict(record.stage_keys(stage))
    return keys[cell.most_specific(keys) or cell]


def final_views(project: Project, record: RunRecord) -> list[RunView]:
    """Return views of the final cells of a run, the narrowest ones.

    What another stage reads is no end, and neither is a cell that only part of a
    system's axes tell apart, unless nothing is.
    """
    parts = list(labelled_parts(record.config))
    last = {name for _, part in parts for name in final_stages(part.settings)}
    done = (step["cell"] for step in record.steps if step["stage"] in last)
    ended_cells = dict.fromkeys(map(Cell.from_mapping, done))
    ends = [
        c for c in ended_cells if not any(c != o and c.serves(o) for o in ended_cells)
    ]
    return [RunView(project, record, cell, find_part(parts, cell)) for cell in ends]


def run_systems(record: RunRecord) -> list[System]:
    """Return the systems of a run, each once."""
    return distinct_systems(part for _, part in labelled_parts(record.config))


def distinct_systems(parts: Iterable[Part]) -> list[System]:
    """Return the distinct systems of some parts."""
    systems = (find_system(part.settings.protocol) for part in parts)
    return list({member.name: member for member in systems}.values())


def production_outcomes(
    project: Project, record: RunRecord
) -> dict[Cell, dict[str, float]]:
    """Return the production metrics of each cell."""
    pairs = (
        (view.cell, view.system.production_metrics(view))
        for view in final_views(project, record)
    )
    return {cell: dict(outcome) for cell, outcome in pairs if outcome}


def run_notes(project: Project, record: RunRecord) -> list[str]:
    """Return the notes of each system of a run for its reader, a line each."""
    views_by_system: dict[str, list[RunView]] = {}
    for view in final_views(project, record):
        views_by_system.setdefault(view.system.name, []).append(view)
    lines = (
        line
        for name, system_views in views_by_system.items()
        for line in find_system(name).notes(system_views)
    )
    return list(dict.fromkeys(lines))


def final_model(project: Project, record: RunRecord, cell: Cell) -> Any:
    """Return the model to keep of a cell's first replicate; None: none.

    It is what the main method was scored with: any object with ``predict``. One of raw
    records takes a table as training did.
    """
    view = RunView(project, record, cell, part_of_cell(record.config, cell))
    model = view.system.final_model(view) if view.system.final_model else None
    if isinstance(model, RecordPredictor):
        from curvote.data.tables.records import RawRecords

        model.form = RawRecords.of(view)
    return model


def drift_alerts(project: Project, record: RunRecord) -> list[str]:
    """Return a line for each cell of a run whose newest batch is worse.

    Only a round that stays open has batches (`intake`); what is worse, the system says.
    """
    return [
        _alert_line(view.cell, facts)
        for view in final_views(project, record)
        for facts in view.sent_facts()
        if find_system(view.settings.protocol).needs_new_round(view.settings, facts)
    ]


def _alert_line(cell: Cell, facts: dict[str, Any]) -> str:
    *before, newest = facts["batches"]
    return (
        f"{cell}: the newest {newest} votes find the classifiers worse than the"
        f" {sum(before)} before them (p = {facts['fall']:.1g}); --new-release asks for"
        " new reports and trains anew"
    )
