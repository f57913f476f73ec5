"""Where a pipeline's axes set a key: what is wrong with a value stands there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from curvote.errors import Where

_IN_PIPELINE: Final = 3  # ("pipelines", name, key)


def dotted_path(where: Where) -> str:
    """Return the path inside the pipeline, as --set takes it."""
    inside = (
        where[2:] if where[0] == "pipelines" and len(where) >= _IN_PIPELINE else where
    )
    return ".".join(str(part) for part in inside)


def set_at(values: Mapping[str, Any], where: Where) -> Where:
    """Return where what stands at ``where`` was written: an axis may have set it.

    ``values`` are those of the file, right or wrong.
    """
    if where[:1] != ("pipelines",) or len(where) < _IN_PIPELINE:
        return where
    pipeline, path = values["pipelines"].get(where[1]), dotted_path(where)
    for place, keys in _setters(pipeline) if isinstance(pipeline, Mapping) else ():
        for key in keys:
            if f"{path}.".startswith(f"{key}."):
                return *where[:2], *place, str(key)
    return where


def _setters(pipeline: Mapping[Any, Any]) -> Iterator[tuple[Where, Iterable[Any]]]:
    """Yield each place that sets dotted keys, with its keys."""
    grid, protocols = pipeline.get("grid"), pipeline.get("protocols")
    for axis, given in grid.items() if isinstance(grid, Mapping) else ():
        if not isinstance(given, Mapping):
            yield ("grid",), (axis,)
            continue
        for label, keys in given.items():
            if isinstance(keys, Mapping):
                yield ("grid", str(axis), str(label)), keys
    for index, one in enumerate(protocols if isinstance(protocols, list) else ()):
        if isinstance(one, Mapping):
            yield ("protocols", index), one
