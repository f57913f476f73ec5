"""Which columns a user's file has and what they hold, for a pipeline to begin with.

Names and kinds only: no value of a column is looked at for what it says of anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from curvote.datasets.own import arrow_cells as cells
from curvote.datasets.own.given import (
    DECIMAL_COMMA,
    Violations,
    batches,
    names_in,
    refuse_other_separator,
)
from curvote.datasets.own.table_rows import MARKS
from curvote.errors import UserError

Kind = Literal["number", "text", "date-time"]


@dataclass(frozen=True)
class Layout:
    """What a pipeline begins with: the kind of each column, and how many rows."""

    path: Path
    kinds: dict[str, Kind]
    rows: int

    @property
    def names(self) -> list[str]:
        """The names of the columns, in the file's order."""
        return list(self.kinds)


def layout(path: Path) -> Layout:
    """Return the columns of the file at ``path``; their kinds are those of its start.

    Raises:
        UserError: no such file, or none that can be read; columns of one name.
    """
    if not path.is_file():
        raise UserError(f"no file {path}. Name a CSV or Parquet file that is there.")
    names = [name for name in names_in(path) if name]  # pandas writes its index so
    _check_names(path, names)
    violations = Violations(path)
    first = next(iter(islice(batches(path, names, violations), 1)), None)
    violations.check()
    if first is None or not first.num_rows:
        raise UserError(f"{path} has no rows.")
    kinds = {name: _kind(cells.plain(first[name])) for name in names}
    return Layout(path, kinds, _counted(path, names[0]))


def runs(path: Path, column: str) -> int:
    """Return how many stretches of rows of one text or number a column has."""
    import pyarrow.compute as pc

    total, last = 0, object()
    for batch in batches(path, [column], Violations(path)):
        ids = pc.run_end_encode(cells.plain(batch[column])).values
        if len(ids):
            total += len(ids) - (ids[0].as_py() == last)
            last = ids[-1].as_py()
    return total


def _check_names(path: Path, names: list[str]) -> None:
    refuse_other_separator(path, names)
    if len(names) == 1:
        raise UserError(f"{path} has one column, {names[0]!r}: a label needs another.")
    wrong = sorted({name for name in names if names.count(name) > 1})
    if wrong:
        said = ", ".join(repr(name) for name in wrong)
        raise UserError(f"{path}: each column needs a name of its own, not {said}.")


def _counted(path: Path, column: str) -> int:
    return sum(batch.num_rows for batch in batches(path, [column], Violations(path)))


def _kind(column: Any) -> Kind:
    """Return the kind of a column by its cells that say something."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not cells.is_text(column):
        return "date-time" if cells.is_date_time(column) else "number"
    text = cells.trimmed(column)
    said = text.filter(pc.invert(pc.is_in(text, pa.array([*MARKS, None], pa.string()))))
    if cells.is_date_time(said):
        return "date-time"
    # A word here and there in a column of numbers is for `check` to name, and commas.
    comma = pc.match_substring_regex(said, f"^{DECIMAL_COMMA}$")
    words = np.isnan(cells.numbers(said)) & ~np.asarray(comma)
    return "text" if len(words) and words.mean() > 0.5 else "number"
