"""Replicates of an earlier study, reused when their number changes.

What reads Parquet turns the codes of categories into 32-bit numbers of another
dictionary and names the parts of a vector anew: rows get the types back with which they
were written, so that a file made of them is the same as one made from nothing.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from curvote.base.object_store import open_source
from curvote.pipeline.config.file import ConfiguredPipeline
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import (
    REPLICATES_KEY,
    EarlierArtifact,
    Sibling,
    Step,
    has_replicates,
    sibling_steps,
)
from curvote.pipeline.store import records
from curvote.pipeline.store.arrow import column_kind
from curvote.pipeline.store.artifacts import Artifact, artifact

if TYPE_CHECKING:
    from curvote.pipeline.store.parquet import Batch


def first_replicates(artifact: Artifact, table: str, count: int) -> Iterator[Batch]:
    """Yield place and rows of the first ``count`` replicates of a table."""
    import pyarrow.parquet as pq  # a plan reads no tables

    with pq.ParquetFile(open_source(artifact.table_path(table))) as file:
        encoded = file.metadata.metadata[b"ARROW:schema"]
        schema, current = pa.ipc.read_schema(pa.py_buffer(b64decode(encoded))), -1
        for place, spans in artifact.spans_by_repetition(table).items():
            if place[0] >= count:
                return
            for group, start, rows in spans:
                if group != current:
                    stored = file.read_row_group(group, use_threads=False)
                    arrays = [_restore_column(f, stored.column(f.name)) for f in schema]
                    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
                    current = group
                yield place, batch.slice(start, rows)


def _restore_column(field: pa.Field, column: pa.ChunkedArray) -> pa.Array:
    kind, values = column_kind(field), column.combine_chunks()
    if isinstance(kind, tuple):
        import pyarrow.compute as pc

        words = pa.array(kind)
        codes = pc.index_in(values.cast(pa.string()), value_set=words)
        codes = codes.cast(field.type.index_type)
        return pa.DictionaryArray.from_arrays(codes, words)
    if pa.types.is_fixed_size_list(field.type):
        return pa.FixedSizeListArray.from_arrays(values.flatten(), type=field.type)
    return values.cast(field.type)


def stage_parameters(step: Step) -> dict[str, Any]:
    """Return a stage's parameters, without the number of replicates.

    One that is repeated over replicates is not told how many there are: what it makes
    of one must hold for any number of them.
    """
    if not has_replicates(step):
        return step.params
    return {n: value for n, value in step.params.items() if n != REPLICATES_KEY}


def reuse_replicates(
    project: Project, configured: ConfiguredPipeline, steps: Sequence[Step]
) -> list[Step]:
    """Return steps; missing ones reuse replicates of runs with another number.

    Nothing is where a step is forced, nor in production, which has one replicate.
    """
    missing = {step.id for step in steps if _is_missing(project, step)}
    if not missing:
        return list(steps)
    replicates = configured.pipeline.replicates
    counts = {*records.replicate_counts(project, configured.name)} - {replicates}
    nearest = sorted(counts, key=lambda n: (n < replicates, abs(n - replicates)))
    plans = [sibling_steps(steps, count) for count in nearest]
    return [
        _with_earlier(project, step, replicates, [plan[step.id] for plan in plans])
        if step.id in missing
        else step
        for step in steps
    ]


def _is_missing(project: Project, step: Step) -> bool:
    reusable = step.action == "run" and not step.forced and has_replicates(step)
    if not reusable:
        return False
    there = artifact(project, step.stage.name, step.key)
    return there.problem(content=False) == "missing"


def _with_earlier(
    project: Project, step: Step, replicates: int, candidates: Iterable[Sibling]
) -> Step:
    """Return a step with the first sibling whose artifact exists, if any."""
    for sibling in candidates:
        there = artifact(project, step.stage.name, sibling.key)
        if sibling.same and there.problem(content=True) is None:
            count, reused = sibling.count, min(sibling.count, replicates)
            present = "1 is there" if count == 1 else f"{count} are there"
            reason = f"{replicates - reused} of {replicates} replicates: {present}"
            if reused == replicates:
                reason = f"the first {reused} of {count} replicates that are there"
            earlier = EarlierArtifact(sibling.key, count, reused)
            return replace(step, earlier=earlier, reason=reason, also=())
    return step
