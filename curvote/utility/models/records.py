"""Records for a model: numbers without gaps, the sensitive ones within their bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.errors import Problem, UserError, did_you_mean
from curvote.utility.models.texts import Texts
from curvote.validate import FloatArray

MISSING: Final = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "<na>"})
MOST_GROUPS: Final = 20

Columns = Mapping[str, Sequence[Any]]


def matrix(
    columns: Columns, names: Sequence[str], where: str, texts: Texts | None = None
) -> FloatArray:
    """Return the columns ``names`` as numbers (n, D), in this order.

    ``texts`` are those of columns that hold text: a text is its place among them.
    ``where`` is what errors call the file. UserError, with every problem: a column that
    is not there, gaps, or text that means nothing, each with its count.
    """
    problems = [_absent(columns, name) for name in names if name not in columns]
    known = texts or {}
    found = {
        name: _places(columns[name], known[name])
        if name in known
        else _numbers(columns[name])
        for name in names
        if name in columns
    }
    for name, values in found.items():
        problems += _wrong(name, columns[name], values, known.get(name))
    if problems:
        every = (Problem(f"{where}: {words}") for words in problems)
        raise UserError.several(every)
    table = np.column_stack([found[name] for name in names])
    if not len(table):
        raise UserError(f"{where}: it has no record.")
    return table


def _absent(columns: Columns, name: str) -> str:
    return f"there is no column {name!r}.{did_you_mean(name, columns)}"


def _numbers(cells: Sequence[Any]) -> FloatArray:
    try:
        return np.array(cells, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array([_number(cell) for cell in cells], dtype=np.float64)


def _places(cells: Sequence[Any], texts: Sequence[str]) -> FloatArray:
    """Return each text's place among those that are known; NaN for any other."""
    place = {text: float(at) for at, text in enumerate(texts)}
    found = [place.get(_text(cell), np.nan) for cell in cells]
    return np.array(found, dtype=np.float64)


def _number(cell: Any) -> float:
    """Return a cell as a number; NaN where it is none."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return np.nan


def gaps(cells: Sequence[Any]) -> NDArray[np.bool_]:
    """Say which cells are empty, whatever way a file writes that."""
    return np.array([_text(cell).lower() in MISSING for cell in cells], dtype=bool)


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _wrong(
    name: str, cells: Sequence[Any], values: FloatArray, texts: Sequence[str] | None
) -> list[str]:
    """Return what is wrong with the cells of a column, gaps and text apart."""
    if np.isfinite(values).all():
        return []
    empty = gaps(cells)
    strange = ~np.isfinite(values) & ~empty
    said = []
    if empty.any():
        said.append(
            f"{name} has {int(empty.sum())} gaps in {len(cells)} records; fill them as"
            " the model's training did, or leave those records out."
        )
    if strange.any():
        first = _text(cells[int(np.argmax(strange))])[:40]
        said.append(f"{name} holds {int(strange.sum())} {_strange(first, texts)}")
    return said


def _strange(first: str, texts: Sequence[str] | None) -> str:
    """Return what is wrong with cells of which one is ``first``."""
    if texts is None:
        return (
            f"values that are no finite numbers, such as {first!r}; encode it as the"
            " model's training did."
        )
    hint = did_you_mean(first, texts)
    return f"texts that the model does not know, such as {first!r}.{hint}"


def clipped(
    records: FloatArray, places: Sequence[int], bounds: FloatArray, names: Sequence[str]
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return records with the columns ``places`` within ``bounds``, and what to say.

    One sentence for each column that had values beyond.
    """
    moved, notes = records.copy(), []
    for place, (low, high) in zip(places, bounds, strict=True):
        moved[:, place] = np.clip(records[:, place], low, high)
        count = int(np.count_nonzero(moved[:, place] != records[:, place]))
        if count:
            notes.append(
                f"{names[place]}: {count} of {len(records)} records lie beyond"
                f" {low:g}:{high:g} and were moved to the edge"
            )
    return moved, tuple(notes)


def labels(
    cells: Sequence[Any], name: str, classes: Sequence[Any], positive: str | None
) -> NDArray[np.int64]:
    """Return the label of each record as its class's place, (n,).

    With ``positive`` that value is the second of two classes and any other the first.
    UserError: gaps, a value that is no class, or ``positive`` where it says nothing.
    """
    _no_gaps(cells, name)
    texts = [_plain(cell) for cell in cells]
    known = {_plain(each): place for place, each in enumerate(classes)}
    if positive is not None:
        if len(known) != 2:
            raise UserError(
                f"--positive is for two classes; the model has {len(known)}: its labels"
                " must be written as its classes are."
            )
        _one_of(_plain(positive), set(texts), f"--positive {positive}", name)
        known = {text: int(text == _plain(positive)) for text in texts}
    for text in texts:
        _one_of(text, set(known), f"the label {text!r} of column {name}", "the classes")
    return np.array([known[text] for text in texts], dtype=np.int64)


def _one_of(text: str, known: set[str], what: str, of: str) -> None:
    if text not in known:
        shown = ", ".join(sorted(known)[:10])
        raise UserError(f"{what} is none of {of}: {shown}. Say --positive VALUE?")


def groups(cells: Sequence[Any], name: str) -> NDArray[np.str_]:
    """Return the group of each record as text, (n,); UserError: gaps, or too many."""
    _no_gaps(cells, name)
    found = np.array([_plain(cell) for cell in cells])
    count = len(np.unique(found))
    if count > MOST_GROUPS:
        raise UserError(
            f"--group {name} has {count} different values, at most {MOST_GROUPS} are"
            " told apart; give a column of few groups (bins of an age)."
        )
    return found


def _no_gaps(cells: Sequence[Any], name: str) -> None:
    count = int(gaps(cells).sum())
    if count:
        raise UserError(
            f"{name} has {count} gaps in {len(cells)} records; leave those records out."
        )


def _plain(value: Any) -> str:
    """Return a value as text: 1, 1.0 and '1' are one class."""
    text = str(value).strip()
    try:
        number = float(text)
    except ValueError:
        return text
    return f"{number:.12g}"
