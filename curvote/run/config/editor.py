"""Starter files of a project: a first pipelines.yaml and its JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from curvote.chain.lookup import all_systems
from curvote.chain.registry import SYSTEMS
from curvote.datasets.lookup import module
from curvote.datasets.registry import DATASETS
from curvote.run.config.runtime import Runtime
from curvote.run.config.schema import Defaults, pipeline_model


def editor_schema() -> dict[str, Any]:
    """Return the JSON Schema of the whole file, with the sections of all systems.

    What defaults may give, or a system has a default for, is not required.
    """
    pipeline = pipeline_model(frozenset(SYSTEMS)).model_json_schema()
    parts, inherited = pipeline.pop("$defs"), Defaults.model_fields
    runtime = Runtime.model_json_schema()
    parts |= runtime.pop("$defs")
    free = {*inherited, *_optional_sections()}
    pipeline["required"] = [key for key in pipeline["required"] if key not in free]
    defaults = {name: pipeline["properties"][name] for name in inherited}
    pipeline["properties"]["source"] = _source_schema()
    parts |= dict(_source_definitions())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {**parts, "Pipeline": pipeline},
        "type": "object",
        "required": ["pipelines"],
        "additionalProperties": False,
        "properties": {
            "defaults": {
                "type": "object",
                "properties": defaults,
                "additionalProperties": False,
            },
            "pipelines": {
                "type": "object",
                "additionalProperties": {"$ref": "#/$defs/Pipeline"},
            },
            "runtime": runtime,
        },
    }


def _source_schema() -> dict[str, Any]:
    """Return the schema of ``source``; its name decides which keys it takes."""
    names = [*DATASETS]
    conditions = [
        {
            "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
            "then": {"$ref": f"#/$defs/{_definition_name(name)}"},
        }
        for name in names
    ]
    name_property = {
        "name": {"enum": names, "description": "`curvote data list` names them."}
    }
    return {
        "type": "object",
        "required": ["name"],
        "properties": name_property,
        "allOf": conditions,
    }


def _source_definitions() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and schema of each source, and of the parts of sources.

    No key is required: an axis of a grid may give it.
    """
    for name in DATASETS:
        definition = _definition_name(name)
        form = module(name).Parameters
        schema = form.model_json_schema(ref_template=f"#/$defs/{definition}.{{model}}")
        for part, inner in schema.pop("$defs", {}).items():
            yield f"{definition}.{part}", inner
        yield (
            definition,
            {key: value for key, value in schema.items() if key != "required"},
        )


def _definition_name(name: str) -> str:
    return f"source.{name}"


def _optional_sections() -> Iterator[str]:
    """Yield the sections that some system reads but does not require."""
    for member in all_systems():
        fields = member.settings.model_fields.items()
        yield from (name for name, field in fields if not field.is_required())
