"""A JSON Schema of pipelines.yaml, so that an editor completes and checks it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from curvote.chain.lookup import systems
from curvote.chain.registry import SYSTEMS
from curvote.datasets.lookup import module
from curvote.datasets.registry import DATASETS
from curvote.run.config.runtime import Runtime
from curvote.run.config.schema import Defaults, model


def editor_schema() -> dict[str, Any]:
    """Return the schema of the whole file: the sections of all systems together.

    What defaults may give, or a system has a default for, is not required.
    """
    pipeline = model(frozenset(SYSTEMS)).model_json_schema()
    parts, inherited = pipeline.pop("$defs"), Defaults.model_fields
    runtime = Runtime.model_json_schema()
    parts |= runtime.pop("$defs")
    free = {*inherited, *_optional()}
    pipeline["required"] = [key for key in pipeline["required"] if key not in free]
    defaults = {name: pipeline["properties"][name] for name in inherited}
    pipeline["properties"]["source"] = _source()
    parts |= dict(_sources())
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


def _source() -> dict[str, Any]:
    """Return the schema of ``source``: its name says which keys there are."""
    names = [*DATASETS]
    named = [
        {
            "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
            "then": {"$ref": f"#/$defs/{_called(name)}"},
        }
        for name in names
    ]
    known = {"name": {"enum": names, "description": "`curvote data list` names them."}}
    return {"type": "object", "required": ["name"], "properties": known, "allOf": named}


def _sources() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the schema of each source, and of the parts of those, by their names.

    No key is required: an axis of a grid may give it.
    """
    for name in DATASETS:
        own = _called(name)
        form = module(name).Parameters
        made = form.model_json_schema(ref_template=f"#/$defs/{own}.{{model}}")
        for part, inner in made.pop("$defs", {}).items():
            yield f"{own}.{part}", inner
        yield own, {key: value for key, value in made.items() if key != "required"}


def _called(name: str) -> str:
    return f"source.{name}"


def _optional() -> Iterator[str]:
    """Yield the sections that some system reads and can do without."""
    for one in systems():
        fields = one.settings.model_fields.items()
        yield from (name for name, field in fields if not field.is_required())
