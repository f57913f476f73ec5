"""Outcomes of calls as columns of numbers: values, texts, lengths, keys, errors.

Whatever a call returns is taken apart into leaves by name, such as ``output['n'][0]``.
A text is the number of its CRC, so that texts are values like any other.
"""

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from curvote.checks.events import MISSING, FloatArray

Columns = dict[str, FloatArray]
Leaf = tuple[str, float | str]
# Elements of a list that become columns; how deep lists and objects are looked into.
MOST_NUMBERS, DEEPEST = 64, 6
# Beyond it a float is no longer every integer.
EXACT = 2**53
LONGEST_TEXT, MOST_TEXTS = 120, 100_000
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# Texts of the numbers in a column, for whoever reads an event.
_TEXTS: dict[tuple[str, float], str] = {}


@dataclass(frozen=True)
class Raised:
    """An exception as an outcome: its type and its text."""

    kind: str
    text: str


def text_number(name: str, text: str) -> float:
    """Return the number that stands for a text in the column ``name``."""
    number = float(zlib.crc32(text.encode("utf-8", "backslashreplace")))
    if len(_TEXTS) < MOST_TEXTS:
        _TEXTS[name, number] = text[:LONGEST_TEXT]
    return number


def number_text(name: str, number: float) -> str | None:
    """Return the text that a number stands for in a column, if it was seen."""
    return _TEXTS.get((name, number))


def outcome_columns(outputs: Sequence[Any]) -> Columns:
    """Return the leaves of n outcomes as columns (n,) by name."""
    quick = _number_columns(outputs)
    if quick is not None:
        return quick
    rows = [dict(_leaves(output, "output", 0)) for output in outputs]
    columns: Columns = {}
    for i, row in enumerate(rows):
        for name, value in row.items():
            if name not in columns:
                columns[name] = np.full(len(rows), MISSING)
            number = text_number(name, value) if isinstance(value, str) else value
            columns[name][i] = number
    return columns


def aligned(first: Columns, second: Columns) -> tuple[Columns, Columns]:
    """Return both with all columns of either."""
    sides = []
    for side in (first, second):
        n = len(next(iter(side.values())))
        lacking = [name for name in {**first, **second} if name not in side]
        sides.append({**side, **{name: np.full(n, MISSING) for name in lacking}})
    return sides[0], sides[1]


def _number_columns(outputs: Sequence[Any]) -> Columns | None:
    """Return the same columns at once for numbers, or arrays, of one kind."""
    kinds = set(map(type, outputs))
    if len(kinds) != 1:
        return None
    kind, first = kinds.pop(), outputs[0]
    if issubclass(kind, np.ndarray):
        forms = {(output.shape, output.dtype) for output in outputs}
        is_plain = first.ndim and first.dtype.kind in "biuf" and len(forms) == 1
        if not is_plain or not 0 < first.size <= MOST_NUMBERS:
            return None
        rows = np.asarray(outputs).reshape(len(outputs), -1)
    elif issubclass(kind, float | int | np.integer | np.floating | np.bool_):
        rows = np.asarray(outputs)[:, None]
    else:
        return None
    if rows.dtype.kind in "iuO" and (abs(rows) >= EXACT).any():
        return None
    *names, form = [name for name, _ in _leaves(first, "output", 0)]
    number = text_number(form, str(dict(_leaves(first, "output", 0))[form]))
    columns = dict(zip(names, rows.astype(np.float64).T, strict=True))
    return {**columns, form: np.full(len(rows), number)}


def _leaves(value: Any, name: str, depth: int) -> Iterator[Leaf]:
    """Yield the leaves of an outcome, numbers first, its form last."""
    form = type(value).__name__
    if isinstance(value, BaseException):
        value = Raised(form, str(value))
    if isinstance(value, Raised):
        yield f"error instead of {name}", f"{value.kind}: {_plain(value.text)}"
        return
    if isinstance(value, np.generic):
        value = value.item()  # NumPy's numbers are numbers like Python's
        form = type(value).__name__
    if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "biuf":
        form = f"{value.dtype} {value.shape}"
        flat = value.ravel()
        for i, number in enumerate(flat[:MOST_NUMBERS].tolist()):
            yield from _number_leaf(number, f"{name}[{i}]")
        if flat.size > MOST_NUMBERS:
            yield f"sum of {name}", float(flat.astype(np.float64).sum())
            yield f"all of {name}", str(zlib.crc32(flat.tobytes()))
    elif isinstance(value, Real):
        yield from _number_leaf(value, name)
    elif isinstance(value, str):
        yield from _text_leaves(value, name, depth)
    elif isinstance(value, bytes | bytearray):
        yield from _byte_leaves(value, name, depth)
    elif depth < DEEPEST and (parts := _parts(value, name)) is not None:
        yield f"parts of {name}", repr([part for part, _ in parts])
        yield f"length of {name}", float(len(parts))
        for part, inner in parts[:MOST_NUMBERS]:
            yield from _leaves(inner, part, depth + 1)
    else:
        yield name, _plain(repr(value))
    yield f"form of {name}", form


def _parts(value: Any, name: str) -> list[tuple[str, Any]] | None:
    """Return the named parts of a container or an object; None where it has none."""
    if isinstance(value, Mapping):
        return [(f"{name}[{key!r}]", part) for key, part in value.items()]
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.ndim else [value.item()]
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    if isinstance(value, list | tuple):
        return [(f"{name}[{i}]", part) for i, part in enumerate(value)]
    if callable(value) or not hasattr(value, "__dict__"):
        return None
    # What begins with an underscore is a generator's state, as often as not.
    public = {k: v for k, v in vars(value).items() if not k.startswith("_")}
    return [(f"{name}.{key}", part) for key, part in public.items()] or None


def _number_leaf(value: Any, name: str) -> Iterator[Leaf]:
    try:
        number = float(value)
    except OverflowError:
        yield name, repr(value)
        return
    yield name, number
    if isinstance(value, int) and abs(value) >= EXACT:
        yield f"digits of {name}", str(value)


def _byte_leaves(value: bytes | bytearray, name: str, depth: int) -> Iterator[Leaf]:
    try:
        yield from _text_leaves(value.decode("utf-8"), name, depth)
    except UnicodeDecodeError:
        yield f"length of {name}", float(len(value))
        yield f"all of {name}", value.hex()
        for i, byte in enumerate(value[:16]):
            yield f"byte {i} of {name}", float(byte)


def _text_leaves(text: str, name: str, depth: int) -> Iterator[Leaf]:
    """Yield length and text, and what stands in it: JSON or numbers."""
    yield f"length of {name}", float(len(text))
    if text[:1] in {"{", "["} and depth < DEEPEST:
        with suppress(ValueError):
            yield from _leaves(json.loads(text), name, depth + 1)
            return
    for i, number in enumerate(_NUMBER.findall(text)[:8]):
        yield f"number {i} of {name}", float(number)
    yield f"text of {name}", _plain(text)
    yield f"words of {name}", _NUMBER.sub("#", _plain(text))


def _plain(text: str) -> str:
    return _ADDRESS.sub("", text)
