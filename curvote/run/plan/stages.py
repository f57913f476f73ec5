"""Expansion of a pipeline into steps: stages, cells, inputs and keys."""

from __future__ import annotations

from dataclasses import replace

from curvote.chain.lookup import find_system
from curvote.chain.stage import Stage
from curvote.run.config.schema import Pipeline


def stages_of(pipeline: Pipeline) -> tuple[Stage, ...]:
    """Return the stages of a pipeline's system for the pipeline's mode."""
    chain = find_system(pipeline.protocol)
    if not pipeline.production:
        return tuple(_with_made_tables(stage, pipeline) for stage in chain.stages)
    if pipeline.intake is None:
        return chain.production
    return tuple(replace(s, module=s.collected or s.module) for s in chain.production)


def _with_made_tables(stage: Stage, pipeline: Pipeline) -> Stage:
    """Return a stage with those tables that it makes for these settings."""
    made_tables = tuple(table for table in stage.tables if table.when(pipeline))
    return stage if made_tables == stage.tables else replace(stage, tables=made_tables)


def final_stages(pipeline: Pipeline) -> set[str]:
    """Return the names of the stages that no other stage reads."""
    stages = stages_of(pipeline)
    read = {name.partition("@")[0] for stage in stages for name in stage.inputs}
    return {stage.name for stage in stages} - read
