"""What a published table must look like, and where one does not: all of it at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# Says of each cell of a column whether it may stand there.
Rule = Callable[[Any], Any]
MISSING = "columns that are missing"
UNEXPECTED = "columns that are not expected"


@dataclass(frozen=True)
class Broken:
    """A rule that does not hold: in a cell, or, without a ``line``, for a column."""

    rule: str
    column: str
    line: int | None = None
    value: Any = None


def broken(
    frame: pd.DataFrame,
    rules: Mapping[str, Mapping[str, Rule]],
    ignored: Collection[str] = (),
) -> list[Broken]:
    """Return what breaks the ``rules`` of its columns, by lines, columns last.

    A line is the row's index. Columns beside those of ``rules`` and ``ignored`` are not
    expected.
    """
    wanted = [*rules, *ignored]
    strange = [Broken(UNEXPECTED, str(name)) for name in frame if name not in wanted]
    missing = [Broken(MISSING, name) for name in wanted if name not in frame]
    there = [name for name in rules if name in frame]
    cells = [each for name in there for each in _cells(frame[name], rules[name])]
    return [*sorted(cells, key=lambda each: each.line or 0), *strange, *missing]


def _cells(cells: pd.Series[Any], rules: Mapping[str, Rule]) -> Iterator[Broken]:
    for rule, holds in rules.items():
        for line, value in cells[~holds(cells).astype(bool)].items():
            yield Broken(rule, str(cells.name), int(str(line)), value)
