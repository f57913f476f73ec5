"""Starter files of a project: a first pipelines.yaml and its JSON Schema."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal

from curvote.base.errors import UserError
from curvote.chain.lookup import all_systems
from curvote.chain.registry import SYSTEMS
from curvote.data.lookup import module
from curvote.data.registry import DATASETS
from curvote.data.tables import starter
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.schema import Defaults, Runtime, pipeline_model


def editor_schema() -> dict[str, Any]:
    """Return the JSON Schema of the whole file, with the sections of all systems.

    What defaults may give, or a system has a default for, is not required.
    """
    pipeline = pipeline_model(frozenset(SYSTEMS)).model_json_schema()
    parts, inherited = pipeline.pop("$defs"), Defaults.model_fields
    runtime = Runtime.model_json_schema()
    parts |= runtime.pop("$defs")
    optional = {
        name
        for member in all_systems()
        for name, field in member.settings.model_fields.items()
        if not field.is_required()
    }
    free = {*inherited, *optional}
    pipeline["required"] = [key for key in pipeline["required"] if key not in free]
    defaults = {name: pipeline["properties"][name] for name in inherited}
    pipeline["properties"]["source"], sources = _source_schemas()
    parts |= sources
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


def _source_schemas() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of ``source``, and by name those of each source and its parts.

    The name decides which keys it takes. No key is required: an axis of a grid may
    give it.
    """
    conditions, definitions = [], {}
    for name in DATASETS:
        definition = f"source.{name}"
        condition = {"properties": {"name": {"const": name}}, "required": ["name"]}
        reference = {"$ref": f"#/$defs/{definition}"}
        conditions.append({"if": condition, "then": reference})
        form = module(name).Parameters
        schema = form.model_json_schema(ref_template=f"#/$defs/{definition}.{{model}}")
        for part, inner in schema.pop("$defs", {}).items():
            definitions[f"{definition}.{part}"] = inner
        schema.pop("required", None)
        definitions[definition] = schema
    names = {"enum": [*DATASETS], "description": "`curvote data list` names them."}
    source = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": names},
        "allOf": conditions,
    }
    return source, definitions


SCHEMA = "pipelines.schema.json"
Form = Literal["table", "curves"]
_HEADER = f"""\
# yaml-language-server: $schema={SCHEMA}
# The pipelines of this project. Copy one, rename it, change what you like.
#
#   curvote check NAME     read the file, and say what is in it and what is odd
#   curvote plan NAME      say what would run and why
#   curvote run NAME       run what is new, reuse the rest
#   curvote report NAME    draw the report: one HTML file
#
# An unknown key is an error. An editor reads {SCHEMA};
# `curvote list --schema > {SCHEMA}` renews it after an upgrade.

pipelines:
"""


def begin_project(
    folder: Path, form: Form | None, file: Path | None
) -> tuple[Path, str]:
    """Write pipelines.yaml into ``folder``; return its path and the pipeline's name.

    ``file`` is the user's table or curves, ``form`` which of the two; without them the
    pipeline is a small simulated one.

    Raises:
        UserError: there is a pipelines.yaml, or a file cannot be read or is ``folder``.
    """
    if folder.is_file():
        raise UserError(
            f"{folder} is a file; init takes the folder of a project. To begin with a"
            f" file: `curvote init --table {folder}`, or --curves."
        )
    place = Project(folder).pipelines_file
    if place.exists():
        raise UserError(
            f"{place} is there already, and init never overwrites. Name a new folder,"
            " as `curvote init FOLDER`, or add to the file by hand."
        )
    name, text = "demo", starter.SIMULATED
    if form is not None and file is not None:
        layout = starter.read_layout(file)
        write = starter.table_pipeline if form == "table" else starter.curves_pipeline
        root, path = folder.resolve(), file.resolve()
        near = path.is_relative_to(root.parent)
        name, text = write(layout, os.path.relpath(path, root) if near else str(path))
    folder.mkdir(parents=True, exist_ok=True)
    schema = folder / SCHEMA
    if not schema.exists():
        text_of_schema = json.dumps(editor_schema(), indent=1) + "\n"
        schema.write_text(text_of_schema, encoding="utf-8")
    with place.open("x", encoding="utf-8") as new:  # never over another
        new.write(f"{_HEADER}{text}\n")
    return place, name
