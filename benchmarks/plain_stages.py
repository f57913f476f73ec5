"""The stages of a pipeline as plain functions on tables in memory, and their CPU time.

Run as ``python -m benchmarks.plain_stages FOLDER PIPELINE REPLICATES``; prints the CPU
seconds of all stage functions, without imports and plan. Nothing is stored.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from curvote.chain.stage import (
    SHARED,
    Columns,
    Place,
    Rows,
    StageContext,
    make_rows,
    stack_rows,
    stage_functions,
)
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import Step
from curvote.pipeline.run.execution import DEFAULT_BLOCK
from curvote.pipeline.run.planner import make_plan

Key = tuple[str, str]


@dataclass
class Memory:
    """What a stage made: its metadata, and the columns of each table and repetition."""

    metadata: dict[str, Any]
    tables: dict[tuple[str, Place], Columns] = field(default_factory=dict)

    def columns(
        self, table: str, place: Place, only: Sequence[str] | None = None
    ) -> Columns:
        """Return the columns of one repetition, or those that all share."""
        found = self.tables.get((table, place)) or self.tables[table, SHARED]
        return found if only is None else {n: v for n, v in found.items() if n in only}

    def count(self, table: str, place: Place) -> int:
        """Return how many shards there are: one."""
        return 1

    def shards(
        self, table: str, place: Place, only: Sequence[str] | None = None
    ) -> Iterator[Columns]:
        """Yield the columns of one repetition: here there are no shards."""
        yield self.columns(table, place, only)

    def shard(
        self, table: str, place: Place, number: int, only: Sequence[str] | None = None
    ) -> Columns:
        """Return the columns of one repetition, which are those of its only shard."""
        return self.columns(table, place, only)


def computed(step: Step, done: dict[Key, Memory]) -> Memory:
    """Return what the functions of a step's stage make of what others made."""
    stage = stage_functions(step.stage.module)
    inputs: Any = {name: done[at] for name, at in step.sources.items()}
    params = step.params | {"raw.paths": {}}
    metadata = stage.metadata(inputs, params) if hasattr(stage, "metadata") else {}
    heres = [
        StageContext(step.stage.name, place, step.sizes, inputs, params, metadata)
        for place in step.places
    ]
    made = Memory(metadata)
    for start in range(0, len(heres), DEFAULT_BLOCK):
        part = heres[start : start + DEFAULT_BLOCK]
        for context, rows in zip(part, tables(stage, part), strict=True):
            for name, columns in rows.items():
                made.tables[name, context.place] = columns
    return made


def tables(stage: Any, heres: Sequence[StageContext]) -> Iterator[Rows]:
    """Yield the tables of each repetition."""
    if hasattr(stage, "batch"):
        made: Iterator[Rows] = stage.batch(heres)
        return made
    return (stack_rows([*make_rows(stage, context)]) for context in heres)


def main(folder: str, pipeline: str, replicates: str) -> None:
    """Compute every stage and print how long that took."""
    project = Project(Path(folder))
    configured = PipelinesFile(project).configure_pipeline(
        pipeline, (), replicates=int(replicates), seed=None
    )
    steps = make_plan(project, configured).steps
    for step in steps:
        stage_functions(step.stage.module)
    done: dict[Key, Memory] = {}
    with threadpool_limits(limits=1):
        start = time.process_time()
        for step in steps:
            done[step.id] = computed(step, done)
        print(time.process_time() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
