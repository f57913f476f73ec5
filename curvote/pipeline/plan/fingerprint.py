"""Digests that name a result: of values, of files, and versions of libraries."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.pipeline.config.yaml_document import as_one_line

Numbers = Callable[[], NDArray[np.int64]]
# Of a long list, as text at once.
_NUMBERS: Final = 1 << 16
LIBRARIES = ("numpy", "scipy", "scikit-learn")


def json_digest(values: Any) -> str:
    """Return the SHA-256 of plain JSON values, whatever the order of their keys."""
    text = json.dumps(values, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def step_key(components: Mapping[str, Any]) -> str:
    """Return the key of a step: the start of its components' digest."""
    return json_digest(components)[:32]


def lists_digest(texts: Mapping[str, str], lists: Mapping[str, Numbers]) -> str:
    """Return the `of_json` digest of texts and long lists, without a copy."""
    total = hashlib.sha256(b"{")
    for place, name in enumerate(sorted([*texts, *lists])):
        total.update(f"{',' * bool(place)}{json.dumps(name)}:".encode())
        parts = _parts(lists[name]()) if name in lists else [json.dumps(texts[name])]
        for part in parts:
            total.update(part.encode())
    total.update(b"}")
    return total.hexdigest()


def _parts(numbers: NDArray[np.int64]) -> Iterator[str]:
    """Yield the JSON text of a list in parts."""
    yield "["
    for start in range(0, len(numbers), _NUMBERS):
        part = numbers[start : start + _NUMBERS].tolist()
        yield "," * bool(start) + json.dumps(part, separators=(",", ":"))[1:-1]
    yield "]"


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def library_versions(more: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of Python and of the libraries numbers depend on."""
    names = (*LIBRARIES, *more)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"python": python} | {name: _version(name) for name in names}


_version = cache(version)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield all that differs between the components of two keys, most telling first."""
    for name, before, now in _changed(old["params"], new["params"]):
        for path, was, will in _inner(name, before, now):
            yield f"parameter {path} {as_one_line(was)} -> {as_one_line(will)}"
    if old.get("raw") != new.get("raw"):
        keyed = any(isinstance(entry, dict) for entry in new.get("raw", {}).values())
        yield "the raw file changed" + ", or data/state/digest.key" * keyed
    yield from _code(old["code"], new["code"], alone=old["params"] == new["params"])
    for name, before, now in _changed(old["versions"], new["versions"]):
        yield f"library {name} {before} -> {now}"
    for name, _, _ in _changed(old["inputs"], new["inputs"]):
        yield f"input {name} changed"
    if old["contract"] != new["contract"]:
        yield f"contract {old['contract']} -> {new['contract']}"


def _code(
    old: Mapping[str, Any], new: Mapping[str, Any], *, alone: bool
) -> Iterator[str]:
    """Yield which definitions differ; keys were once made of whole modules.

    What only one of them reaches is no reason but where it differs ``alone``: it
    follows from a parameter, or from what is common to both.
    """
    if not any(isinstance(code, dict) for code in old.values()):
        yield "keys count definitions now, and no longer whole modules"
        return
    differing = list(_changed(_flat(old), _flat(new)))
    common = [name for name, before, now in differing if before and now]
    for name in common or [name for name, _, _ in differing if alone]:
        yield f"code {name} changed"


def _flat(code: Mapping[str, Any]) -> dict[str, str]:
    """Return digests by whole names; an entry of a registry stands for itself."""
    return {
        f"{place}.{name}".strip("."): digest
        for place, part in code.items()
        for name, digest in (part if isinstance(part, dict) else {"": part}).items()
    }


def _changed(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield name, old.get(name), new.get(name)


def _inner(name: str, before: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key, was, will in _changed(before, now):
            yield from _inner(f"{name}.{key}", was, will)
    else:
        yield name, before, now
