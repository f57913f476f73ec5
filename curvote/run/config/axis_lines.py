"""Parsed pipelines.yaml: settings, overrides, placeholders, and places of errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from curvote.errors import KeyPath

_IN_PIPELINE: Final = 3  # ("pipelines", name, key)


def dotted_path(where: KeyPath) -> str:
    """Return the dotted path inside the pipeline, as ``--set`` takes it."""
    inside = (
        where[2:] if where[0] == "pipelines" and len(where) >= _IN_PIPELINE else where
    )
    return ".".join(str(part) for part in inside)


def locate_setting(values: Mapping[str, Any], where: KeyPath) -> KeyPath:
    """Return the place in the file that sets ``where``; this may be an axis.

    ``values`` are those of the file, right or wrong.
    """
    if where[:1] != ("pipelines",) or len(where) < _IN_PIPELINE:
        return where
    pipeline, path = values["pipelines"].get(where[1]), dotted_path(where)
    for place, keys in _axis_setters(pipeline) if isinstance(pipeline, Mapping) else ():
        for key in keys:
            if f"{path}.".startswith(f"{key}."):
                return *where[:2], *place, str(key)
    return where


def _axis_setters(
    pipeline: Mapping[Any, Any],
) -> Iterator[tuple[KeyPath, Iterable[Any]]]:
    """Yield the place of each axis value that sets dotted keys, with those keys."""
    grid, protocols = pipeline.get("grid"), pipeline.get("protocols")
    for axis, entries in grid.items() if isinstance(grid, Mapping) else ():
        if not isinstance(entries, Mapping):
            yield ("grid",), (axis,)
            continue
        for label, keys in entries.items():
            if isinstance(keys, Mapping):
                yield ("grid", str(axis), str(label)), keys
    for index, protocol in enumerate(protocols if isinstance(protocols, list) else ()):
        if isinstance(protocol, Mapping):
            yield ("protocols", index), protocol
