"""A JSON Schema of pipelines.yaml, so that an editor completes and checks it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from curvote.chain.lookup import systems
from curvote.chain.registry import SYSTEMS
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


def _optional() -> Iterator[str]:
    """Yield the sections that some system reads and can do without."""
    for one in systems():
        fields = one.settings.model_fields.items()
        yield from (name for name, field in fields if not field.is_required())
