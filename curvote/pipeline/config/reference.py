"""Reference of pipelines.yaml: each setting by its path, and its text of settings.toml.

A path is what people type after ``--set``: ``project.size``. Settings of a source have
its name in the path, ``source.phonemes.positive``; where no text stands for that, the
one of ``source.positive`` counts, and for ``defaults.seed`` that of ``seed``.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from curvote.pipeline.config.yaml_document import as_one_line

Schema = dict[str, Any]

_KINDS: Final = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
    "object": "mapping",
}
_LIMITS: Final = {
    "minimum": "from {}",
    "exclusiveMinimum": "above {}",
    "maximum": "to {}",
    "exclusiveMaximum": "below {}",
}
_INNER: Final = ("anyOf", "oneOf", "allOf", "items", "additionalProperties", "then")


@cache
def setting_texts() -> dict[str, dict[str, Any]]:
    """Return text, unit and examples by key: a path, or one that several share."""
    text = (files("curvote.pipeline.config") / "settings.toml").read_text("utf-8")
    return tomllib.loads(text)


def text_key(path: str) -> str:
    """Return the key of the text that counts for a path; the path where none does."""
    first, _, rest = path.partition(".")
    shared = {"source": f"source.{rest.partition('.')[2]}", "defaults": rest}
    keys = (path, shared.get(first, path))
    return next((key for key in keys if key in setting_texts()), path)


@dataclass(frozen=True)
class Setting:
    """A setting: its path, its own part of the JSON Schema, and what is written of it.

    ``schema`` refers to nothing at its own level; an empty ``text``: there is none.
    """

    path: str
    schema: Schema
    text: str = ""
    unit: str = ""
    examples: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """The last word of the path."""
        return self.path.rpartition(".")[2]

    @property
    def lines(self) -> list[str]:
        """Each example as a line of the file: ``size: 11``."""
        return [f"{self.name}: {as_one_line(example)}" for example in self.examples]

    @property
    def default(self) -> str:
        """The default as it is written in the file; nothing where it says nothing."""
        default = self.schema.get("default")
        if isinstance(default, dict) or default in (None, [], ""):
            return ""
        return f"{default:g}" if isinstance(default, float) else as_one_line(default)

    @property
    def values(self) -> str:
        """What it may be: choices, or its kind and limits."""
        return " or ".join(dict.fromkeys(_describe_values(self.schema)))

    @property
    def description(self) -> str:
        """Text, unit and default in one paragraph, for an editor."""
        unit = f" Unit: {self.unit}." if self.unit else ""
        return f"{self.text}{unit}" + (
            f" Default: {self.default}." if self.default else ""
        )


def _describe_values(form: Schema) -> Iterator[str]:
    """Yield a phrase for each of the forms that a value may have."""
    kind = "object" if "$ref" in form else form.get("type", "")
    for inner in (*form.get("anyOf", ()), *form.get("oneOf", ())):
        yield from _describe_values(inner)
    if choices := form.get("enum", [form["const"]] if "const" in form else []):
        yield from (f"`{json.dumps(choice).strip(chr(34))}`" for choice in choices)
    elif kind == "array":
        inner = " or ".join(dict.fromkeys(_describe_values(form.get("items", {}))))
        yield f"list of {inner}" if inner else "list"
    elif kind in _KINDS:
        limits = [w.format(f"{form[k]:g}") for k, w in _LIMITS.items() if k in form]
        yield " ".join([_KINDS[kind], *limits])


def list_settings(schema: Schema) -> list[Setting]:
    """Return all settings that a schema of pipelines.yaml knows, in its order."""
    return [_describe(schema, path, form) for path, form in _walk(schema, schema, "")]


def _describe(schema: Schema, path: str, form: Schema) -> Setting:
    entry = setting_texts().get(text_key(path), {})
    return Setting(path, _resolve(schema, form), **entry)


def describe_settings(schema: Schema) -> Schema:
    """Return the schema with each setting described, as an editor shows it.

    What classes of the program say of themselves is taken out: it is for programmers.
    """
    _drop_notes(schema)
    for path, form in _walk(schema, schema, ""):
        setting = _describe(schema, path, form)
        form.update({"description": setting.description} if setting.text else {})
        form.update({"examples": setting.examples} if setting.examples else {})
    return schema


def _drop_notes(part: Any) -> None:
    if isinstance(part, dict):
        for key in ("title", "description"):
            if isinstance(part.get(key), str):
                del part[key]
    inner_parts = part.values() if isinstance(part, dict) else part
    for inner in inner_parts if isinstance(part, dict | list) else ():
        _drop_notes(inner)


def _resolve(schema: Schema, form: Schema) -> Schema:
    """Return a part of the schema, or of its list, with what that refers to."""
    if "$ref" in form:
        definition = schema["$defs"][form["$ref"].removeprefix("#/$defs/")]
        return _resolve(schema, definition) | form
    return form | (
        {"items": _resolve(schema, form["items"])} if "items" in form else {}
    )


def _walk(schema: Schema, form: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Yield path and schema of each property below, in the order of the file."""
    if "$ref" in form:
        name = form["$ref"].removeprefix("#/$defs/")
        # The source's name is a part of the paths of its settings.
        place = name if path == "source" else path
        yield from _walk(schema, schema["$defs"][name], place)
    for name, inner in form.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        yield place, inner
        yield from _walk(schema, inner, place)
    place = "" if path == "pipelines" else path
    for value in (form.get(key) for key in _INNER):
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                yield from _walk(schema, inner, place)
