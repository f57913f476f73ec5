"""Models whose encoders read text: the same models, reading numbers for the texts.

Records are numbers everywhere else, and what an encoder makes of a text depends on its
place among the encoder's categories only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import Problem, UserError, did_you_mean
from curvote.base.validate import FloatArray

# The known texts of a column; a text is coded as its place among them.
Texts = Mapping[str, tuple[str, ...]]


def code_texts(model: Any) -> tuple[Any, Texts]:
    """Return the model as one of numbers, and the texts of its columns.

    A model whose encoders read no text is returned as it is, with none.
    """
    if not any(True for _ in _text_encoders(model)):
        return model, {}
    texts: dict[str, tuple[str, ...]] = {}
    copy = deepcopy(model)
    for columns, encoder, step, place in _text_encoders(copy):
        texts |= _recode_encoder(columns, encoder)
        for earlier in range(place):
            # An imputer of texts has nothing to do: records have no gaps.
            step.steps[earlier] = (step.steps[earlier][0], "passthrough")
    return copy, texts


def _recode_encoder(columns: list[str], encoder: Any) -> dict[str, tuple[str, ...]]:
    """Let an encoder read codes for its texts; return those of each column."""
    texts = {}
    read = zip(columns, encoder.categories_, strict=True)
    for place, (name, levels) in enumerate(read):
        if _are_texts(levels):
            texts[name] = tuple(str(level) for level in levels)
            encoder.categories_[place] = np.arange(len(levels), dtype=np.float64)
    encoder.categories = "auto"
    # What an imputer in front took away, no longer is.
    encoder.feature_names_in_ = np.array(columns, dtype=object)
    return texts


def _are_texts(levels: Any) -> bool:
    """Return whether an encoder's levels are texts."""
    return np.asarray(levels).dtype.kind in "OUS"


def _text_encoders(model: Any) -> Iterator[tuple[list[str], Any, Any, int]]:
    """Yield names, encoder, pipeline and index of each text encoder."""
    for transformer in _first_transformers(model):
        for _, part, columns in getattr(transformer, "transformers_", ()):
            names = [columns] if isinstance(columns, str) else list(columns)
            steps = [
                step_of_part for _, step_of_part in getattr(part, "steps", [("", part)])
            ]
            for place, step in enumerate(steps):
                read = getattr(step, "categories_", ())
                if len(read) == len(names) and any(map(_are_texts, read)):
                    yield [str(name) for name in names], step, part, place
                    break


def _first_transformers(model: Any) -> Iterator[Any]:
    """Yield the transformers that take the model's own columns."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    steps = getattr(model, "steps", None)
    yield model if steps is None else steps[0][1]


MISSING: Final = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "<na>"})
MOST_GROUPS: Final = 20

Columns = Mapping[str, Sequence[Any]]


def model_matrix(
    columns: Columns, names: Sequence[str], where: str, texts: Texts | None = None
) -> FloatArray:
    """Return the columns ``names`` as numbers (n, D), in this order.

    ``texts`` are those of columns that hold text: a text is its place among them.
    ``where`` is what errors call the file. UserError, with every problem: a column that
    is not there, gaps, or text that means nothing, each with its count.
    """
    problems = [
        f"there is no column {name!r}.{did_you_mean(name, columns)}"
        for name in names
        if name not in columns
    ]
    texts_by_column = texts or {}
    values_by_name = {
        name: _text_codes(columns[name], texts_by_column[name])
        if name in texts_by_column
        else _to_numbers(columns[name])
        for name in names
        if name in columns
    }
    for name, values in values_by_name.items():
        problems += _column_problems(
            name, columns[name], values, texts_by_column.get(name)
        )
    if problems:
        every = (Problem(f"{where}: {words}") for words in problems)
        raise UserError.several(every)
    table = np.column_stack([values_by_name[name] for name in names])
    if not len(table):
        raise UserError(f"{where}: it has no record.")
    return table


def _to_numbers(cells: Sequence[Any]) -> FloatArray:
    """Return cells as numbers, NaN where one is none."""
    try:
        return np.array(cells, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array([_to_number(cell) for cell in cells], dtype=np.float64)


def _text_codes(cells: Sequence[Any], texts: Sequence[str]) -> FloatArray:
    """Return each text's index among the known ones, NaN for any other."""
    place = {text: float(at) for at, text in enumerate(texts)}
    codes = [place.get(_cell_text(cell), np.nan) for cell in cells]
    return np.array(codes, dtype=np.float64)


def _to_number(cell: Any) -> float:
    """Return a cell as a number; NaN where it is none."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return np.nan


def gap_mask(cells: Sequence[Any]) -> NDArray[np.bool_]:
    """Return the mask of empty cells, however a file writes them."""
    return np.array([_cell_text(cell).lower() in MISSING for cell in cells], dtype=bool)


def _cell_text(cell: Any) -> str:
    """Return a cell as stripped text."""
    return "" if cell is None else str(cell).strip()


def _column_problems(
    name: str, cells: Sequence[Any], values: FloatArray, texts: Sequence[str] | None
) -> list[str]:
    """Return the problems of a column's cells, gaps and text apart."""
    if np.isfinite(values).all():
        return []
    empty = gap_mask(cells)
    strange = ~np.isfinite(values) & ~empty
    problems = []
    if empty.any():
        problems.append(
            f"{name} has {int(empty.sum())} gaps in {len(cells)} records; fill them as"
            " the model's training did, or leave those records out."
        )
    if strange.any():
        first = _cell_text(cells[int(np.argmax(strange))])[:40]
        problems.append(
            f"{name} holds {int(strange.sum())} {_describe_strange(first, texts)}"
        )
    return problems


def _describe_strange(first: str, texts: Sequence[str] | None) -> str:
    """Return the problem of cells of which one is ``first``."""
    if texts is None:
        return (
            f"values that are no finite numbers, such as {first!r}; encode it as the"
            " model's training did."
        )
    hint = did_you_mean(first, texts)
    return f"texts that the model does not know, such as {first!r}.{hint}"


def clip_records(
    records: FloatArray, places: Sequence[int], bounds: FloatArray, names: Sequence[str]
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return records clipped to ``bounds``, and a note for each moved column.

    One sentence for each column that had values beyond.
    """
    within, notes = records.copy(), []
    for place, (low, high) in zip(places, bounds, strict=True):
        within[:, place] = np.clip(records[:, place], low, high)
        count = int(np.count_nonzero(within[:, place] != records[:, place]))
        if count:
            notes.append(
                f"{names[place]}: {count} of {len(records)} records lie beyond"
                f" {low:g}:{high:g} and were moved to the edge"
            )
    return within, tuple(notes)


def label_codes(
    cells: Sequence[Any], name: str, classes: Sequence[Any], positive: str | None
) -> NDArray[np.int64]:
    """Return the class index of each record's label, (n,).

    With ``positive`` that value is the second of two classes and any other the first.
    UserError: gaps, a value that is no class, or ``positive`` where it says nothing.
    """
    _no_gaps(cells, name)
    texts = [_plain_text(cell) for cell in cells]
    codes = {_plain_text(class_name): place for place, class_name in enumerate(classes)}
    if positive is not None:
        if len(codes) != 2:
            raise UserError(
                f"--positive is for two classes; the model has {len(codes)}: its labels"
                " must be written as its classes are."
            )
        _require_member(
            _plain_text(positive), set(texts), f"--positive {positive}", name
        )
        codes = {text: int(text == _plain_text(positive)) for text in texts}
    for text in texts:
        _require_member(
            text, set(codes), f"the label {text!r} of column {name}", "the classes"
        )
    return np.array([codes[text] for text in texts], dtype=np.int64)


def _require_member(text: str, allowed: set[str], what: str, owner: str) -> None:
    """Refuse a text that is none of the allowed ones."""
    if text not in allowed:
        listed = ", ".join(sorted(allowed)[:10])
        raise UserError(f"{what} is none of {owner}: {listed}. Say --positive VALUE?")


def group_names(cells: Sequence[Any], name: str) -> NDArray[np.str_]:
    """Return the group of each record as text, (n,); UserError: gaps, or too many."""
    _no_gaps(cells, name)
    texts = np.array([_plain_text(cell) for cell in cells])
    count = len(np.unique(texts))
    if count > MOST_GROUPS:
        raise UserError(
            f"--group {name} has {count} different values, at most {MOST_GROUPS} are"
            " told apart; give a column of few groups (bins of an age)."
        )
    return texts


def _no_gaps(cells: Sequence[Any], name: str) -> None:
    """Refuse a column with empty cells."""
    count = int(gap_mask(cells).sum())
    if count:
        raise UserError(
            f"{name} has {count} gaps in {len(cells)} records; leave those records out."
        )


def _plain_text(value: Any) -> str:
    """Return a value as text: 1, 1.0 and '1' are one class."""
    text = str(value).strip()
    try:
        number = float(text)
    except ValueError:
        return text
    return f"{number:.12g}"
