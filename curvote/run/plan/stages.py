"""Which stages the chain of a pipeline has, and which tables they make."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.lookup import system
from curvote.chain.stage import Stage
from curvote.run.config.schema import Pipeline


def stages_of(pipeline: Pipeline) -> tuple[Stage, ...]:
    """Return the chain of a pipeline's system, as the pipeline's mode has it."""
    own = system(pipeline.protocol)
    if not pipeline.production:
        return tuple(_tabled(stage, pipeline) for stage in own.stages)
    if pipeline.intake is None:
        return own.production
    return tuple(replace(s, module=s.collected or s.module) for s in own.production)


def _tabled(stage: Stage, pipeline: Pipeline) -> Stage:
    """Return a stage with the tables that it makes for these settings."""
    there = tuple(table for table in stage.tables if table.when(pipeline))
    return stage if there == stage.tables else replace(stage, tables=there)


def ends_of(pipeline: Pipeline) -> set[str]:
    """Return the names of the stages that no other one of the chain reads."""
    stages = stages_of(pipeline)
    read = {name.partition("@")[0] for stage in stages for name in stage.inputs}
    return {stage.name for stage in stages} - read
