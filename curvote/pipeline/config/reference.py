"""Reference of pipelines.yaml: each setting by its path, and its text of settings.toml.

A path is what people type after ``--set``: ``project.size``. Settings of a source have
its name in the path, ``source.phonemes.positive``; where no text stands for that, the
one of ``source.positive`` counts, and for ``defaults.seed`` that of ``seed``.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from curvote.pipeline.config.yaml_document import as_one_line

Schema = dict[str, Any]

_DEFINITIONS: Final = "#/$defs/"
_ALTERNATIVES: Final = ("anyOf", "oneOf", "allOf")
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


@cache
def setting_texts() -> dict[str, dict[str, Any]]:
    """Return text, unit and examples by key: a path, or one that several share."""
    text = (files("curvote.pipeline.config") / "settings.toml").read_text("utf-8")
    return tomllib.loads(text)


def text_key(path: str) -> str | None:
    """Return the key of the text that counts for a path; None: there is no text."""
    first, _, rest = path.partition(".")
    shorter = {
        "source": f"source.{rest.partition('.')[2]}",
        "defaults": rest,
    }.get(first, path)
    return next((key for key in (path, shorter) if key in setting_texts()), None)


@dataclass(frozen=True)
class Setting:
    """A setting: its path, its own part of the JSON Schema, and what is written of it.

    ``schema`` has no references left at its own level.
    """

    path: str
    schema: Mapping[str, Any]

    @property
    def text(self) -> str:
        """Say in a sentence what it is for, or nothing where nobody wrote that."""
        return str(self._entry.get("text", "")).strip()

    @property
    def unit(self) -> str:
        """The unit of its numbers, or nothing."""
        return str(self._entry.get("unit", ""))

    @property
    def _entry(self) -> Mapping[str, Any]:
        return setting_texts().get(text_key(self.path) or "", {})

    @property
    def examples(self) -> list[str]:
        """What may stand in the file, each in a line, as ``size: 11``."""
        name = self.path.rpartition(".")[2]
        return [f"{name}: {as_one_line(e)}" for e in self._entry.get("examples", ())]

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

    def description(self) -> str:
        """Return text, unit and default in one paragraph, for an editor."""
        unit = f" Unit: {self.unit}." if self.unit else ""
        default = f" Default: {self.default}." if self.default else ""
        return f"{self.text}{unit}{default}"


def _describe_values(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield a phrase for each of the forms that a value may have."""
    kind = "object" if "$ref" in schema else schema.get("type")
    for alternative in _ALTERNATIVES[:2]:
        for inner in schema.get(alternative, ()):
            yield from _describe_values(inner)
    if "const" in schema or "enum" in schema:
        choices = schema.get("enum", [schema.get("const")])
        yield from (f"`{json.dumps(c).strip(chr(34))}`" for c in choices)
    elif kind == "array":
        inner = " or ".join(dict.fromkeys(_describe_values(schema.get("items", {}))))
        yield f"list of {inner}" if inner else "list"
    elif kind in _KINDS:
        limits = [w.format(f"{schema[k]:g}") for k, w in _LIMITS.items() if k in schema]
        yield " ".join([_KINDS[kind], *limits])


def list_settings(schema: Schema) -> list[Setting]:
    """Return all settings that a schema of pipelines.yaml knows, in its order."""
    return [Setting(path, resolve(schema, form)) for path, form in _walk(schema)]


def describe_settings(schema: Schema) -> Schema:
    """Return the schema with each setting described, as an editor shows it.

    What classes of the program say of themselves is taken out: it is for programmers.
    """
    for definition in [schema, *schema["$defs"].values()]:
        _drop_notes(definition)
    for path, form in _walk(schema):
        setting = Setting(path, resolve(schema, form))
        if setting.text:
            form["description"] = setting.description()
        if examples := setting_texts().get(text_key(path) or "", {}).get("examples"):
            form["examples"] = examples
    return schema


def _drop_notes(schema: Any) -> None:
    if isinstance(schema, dict):
        for key in ("title", "description"):
            if isinstance(schema.get(key), str):
                del schema[key]
    inner_parts = schema.values() if isinstance(schema, dict) else schema
    for inner in inner_parts if isinstance(schema, dict | list) else ():
        _drop_notes(inner)


def resolve(schema: Schema, form: Schema) -> Schema:
    """Return a part of the schema, or of its list, with what that refers to."""
    reference = form.get("$ref")
    if reference is None:
        items = {"items": resolve(schema, form["items"])} if "items" in form else {}
        return form | items
    definition = schema["$defs"][reference.removeprefix(_DEFINITIONS)]
    return resolve(schema, definition) | form


def _walk(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield path and schema of each property, in the order of the file."""
    yield from _walk_part(schema, schema, "")


def _walk_part(schema: Schema, form: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    if reference := form.get("$ref"):
        name = reference.removeprefix(_DEFINITIONS)
        # The source's name is a part of the paths of its settings.
        place = name if path == "source" else path
        yield from _walk_part(schema, schema["$defs"][name], place)
    for name, inner in form.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        yield place, inner
        yield from _walk_part(schema, inner, place)
    place = "" if path == "pipelines" else path
    for key in (*_ALTERNATIVES, "items", "additionalProperties", "then"):
        value = form.get(key)
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                yield from _walk_part(schema, inner, place)
