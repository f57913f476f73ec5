"""A JSON Schema of pipelines.yaml, so that an editor completes and checks it."""

from __future__ import annotations

from typing import Any

from curvote.run.config.schema import Pipeline

INHERITED = ("epsilon", "learners", "replicates", "seed")


def editor_schema() -> dict[str, Any]:
    """Return the schema of the whole file; what defaults may give is not required."""
    pipeline = Pipeline.model_json_schema()
    parts = pipeline.pop("$defs")
    pipeline["required"] = [k for k in pipeline["required"] if k not in INHERITED]
    properties = pipeline["properties"]
    # The short forms: one number, and the bare name of a learner.
    properties["epsilon"] = {"anyOf": [{"type": "number"}, properties["epsilon"]]}
    parts["Learner"] = {
        "anyOf": [{"type": "string"}, {"type": "object", "required": ["name"]}]
    }
    inherited = {name: properties[name] for name in INHERITED}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {**parts, "Pipeline": pipeline},
        "type": "object",
        "required": ["pipelines"],
        "additionalProperties": False,
        "properties": {
            "defaults": {
                "type": "object",
                "properties": inherited,
                "additionalProperties": False,
            },
            "pipelines": {
                "type": "object",
                "additionalProperties": {"$ref": "#/$defs/Pipeline"},
            },
        },
    }
