"""Recorded facts of what curvote does: how they are written, read and compared.

A fact is a plain JSON value. It holds no key of a stage, no digest of code, no name of
a module, no version, time or path: what names those is masked.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy, SystemEntropy

RECORDED: Final = Path(__file__).with_name("recorded")
DIGITS: Final = 12


def plain(value: Any, digits: int = DIGITS) -> Any:
    """Return plain JSON values; floats at so many significant digits.

    Bytes are stored models, which name their classes: they are left out.
    """
    if isinstance(value, bytes):
        return "<bytes>"
    if isinstance(value, Mapping):
        return {str(name): plain(own, digits) for name, own in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), digits)
    if isinstance(value, list | tuple):
        return [plain(own, digits) for own in value]
    if isinstance(value, float):
        return (
            float(f"{value:.{digits}g}") + 0.0 if math.isfinite(value) else f"{value}"
        )
    return value


def digest(value: Any, digits: int = DIGITS) -> str:
    """Return the first half of the SHA-256 of a value's JSON."""
    text = json.dumps(plain(value, digits), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def of_columns(columns: Mapping[str, Any], digits: int = DIGITS) -> dict[str, str]:
    """Return a line for each column: kind, shape, and the digest of its values."""
    arrays = {name: np.asarray(own) for name, own in columns.items()}
    return {
        name: f"{own.dtype} {list(own.shape)} {digest(own, digits)[:16]}"
        for name, own in arrays.items()
    }


def totals(columns: Mapping[str, Any]) -> list[Any]:
    """Return a digest of what is no float, the sum of all sizes, and a weighted mean.

    Weights go with a value's place, so values that change places change the mean.
    Iterations carry the last digits of a processor to the eighth, where a digest of
    rounded values would tell two processors apart.
    """
    arrays = {name: np.asarray(own) for name, own in columns.items()}
    floats = {name: own for name, own in arrays.items() if own.dtype.kind == "f"}
    exact: dict[str, Any] = {n: own for n, own in arrays.items() if n not in floats}
    exact |= {n: [*own.shape, np.isnan(own).tolist()] for n, own in floats.items()}
    values = np.nan_to_num(
        np.concatenate([np.zeros(0), *(own.ravel() for own in floats.values())])
    )
    size = float(np.abs(values).sum())
    weighted = float(np.cos(np.arange(len(values))) @ values)
    return [digest(exact)[:16], size, weighted / size if size else 0.0]


def differences(found: Any, known: Any, tolerance: float, path: str = "") -> list[str]:
    """Return where two facts differ, floats by more than a part of their size."""
    if isinstance(found, dict) and isinstance(known, dict):
        if found.keys() != known.keys():
            return [f"{path}: one alone has {sorted(found.keys() ^ known.keys())}"]
        pairs = [(name, found[name], known[name]) for name in known]
    elif isinstance(found, list) and isinstance(known, list):
        if len(found) != len(known):
            return [f"{path}: {len(found)} and {len(known)} items"]
        pairs = [
            (str(i), *both) for i, both in enumerate(zip(found, known, strict=True))
        ]
    elif isinstance(found, float) and isinstance(known, float):
        near = math.isclose(found, known, rel_tol=tolerance, abs_tol=tolerance / 1000)
        return [] if near else [f"{path}: {found} and {known}"]
    else:
        return [] if found == known else [f"{path}: {found} and {known}"]
    parts = (differences(a, b, tolerance, f"{path}/{name}") for name, a, b in pairs)
    return [line for part in parts for line in part]


def portable(document: Any) -> Any:
    """Return a task's document without the last digits of numbers in its lists.

    A projection and a weak learner's line come from a linear algebra library, which
    has a kernel of its own for each processor: the 16th digit is another without
    AVX-512, and so would be the digest. Numbers outside lists are settings: they stay.
    """
    if isinstance(document, Mapping):
        return {name: portable(own) for name, own in document.items()}
    if isinstance(document, list):
        return [
            round(own, 9) + 0.0 if isinstance(own, float) else portable(own)
            for own in document
        ]
    return document


def masked(text: str, *words: str) -> str:
    """Return a text without what differs from run to run; ``words`` are left out."""
    for word in words:
        text = text.replace(word, "<masked>")
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return text


_VOLATILE: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"\d{8}-\d{6}(-\d+)?-[0-9a-f]{4,}", "<run>"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?", "<time>"),
        (r"\b20\d\d-\d\d-\d\d\b", "<date>"),
        (r"\b\d{8}T\d{6,}\b", "<time>"),
        (r"[\d.]+ GiB of [\d.]+ GiB|[\d,]+ more files|\d+ packages", "<size>"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b", "<id>"),
        (r"\b[0-9a-f]{16,128}\b", "<digest>"),
        (r"\bcurvote(\.[a-z_]+){2,}", "<name>"),
    )
)


def seeded(patch: pytest.MonkeyPatch) -> None:
    """Let the operating system's words be those of a seed, from its first one on."""
    source = SeededEntropy(7)
    patch.setattr(SystemEntropy, "words", lambda _, n: source.words(n))


def items(kind: str) -> dict[str, Any]:
    """Return what is recorded of a kind, by name; nothing before it was made."""
    path = RECORDED / f"{kind}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def recorded(kind: str, name: str) -> Any:
    """Return a recorded fact; None where `tests.pins.make` has yet to record it."""
    return items(kind).get(name)


def as_json(value: Any) -> Any:
    """Return a fact as it is read from a file."""
    return json.loads(json.dumps(value))


def write(kind: str, found: Mapping[str, Any]) -> None:
    """Record facts: a line for each part of each item."""
    lines = ",\n".join(
        f"{_text(name)}: {_parts(found[name])}" for name in sorted(found)
    )
    (RECORDED / f"{kind}.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _parts(item: Any) -> str:
    if isinstance(item, dict):
        lines = [f" {_text(name)}: {_text(own)}" for name, own in sorted(item.items())]
        return "{\n" + ",\n".join(lines) + "\n}"
    if isinstance(item, list):
        return "[\n" + ",\n".join(f" {_text(own)}" for own in item) + "\n]"
    return _text(item)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
