"""New project: a first pipelines.yaml, and a schema for editors."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal

from curvote.datasets.own import columns, starter
from curvote.errors import UserError
from curvote.run.config.editor import editor_schema
from curvote.run.project import Project

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
    name, text = _starter_text(folder, form, file)
    folder.mkdir(parents=True, exist_ok=True)
    schema = folder / SCHEMA
    if not schema.exists():
        schema.write_text(
            json.dumps(editor_schema(), indent=1) + "\n", encoding="utf-8"
        )
    with place.open("x", encoding="utf-8") as new:  # never over another
        new.write(f"{_HEADER}{text}\n")
    return place, name


def _starter_text(
    folder: Path, form: Form | None, file: Path | None
) -> tuple[str, str]:
    if form is None or file is None:
        return "demo", starter.SIMULATED
    layout = columns.read_layout(file)
    write = starter.table_pipeline if form == "table" else starter.curves_pipeline
    return write(layout, _relative_path(folder, file))


def _relative_path(folder: Path, file: Path) -> str:
    """Return the file's path relative to the folder of pipelines.yaml."""
    root, path = folder.resolve(), file.resolve()
    near = path.is_relative_to(root.parent)
    return os.path.relpath(path, root) if near else str(path)
