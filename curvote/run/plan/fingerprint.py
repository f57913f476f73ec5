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
