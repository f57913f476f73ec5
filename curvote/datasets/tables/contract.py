"""Column rules of a published table, and all violations of them at once."""

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
class Violation:
    """A violated rule of a cell or, without a ``line``, of a column."""

    rule: str
    column: str
    line: int | None = None
    value: Any = None


def find_violations(
    frame: pd.DataFrame,
    rules: Mapping[str, Mapping[str, Rule]],
    ignored: Collection[str] = (),
) -> list[Violation]:
    """Return the violations of the columns' ``rules``, by line, columns last.

    A line is the row's index. Columns beside those of ``rules`` and ``ignored`` are not
    expected.
    """
    wanted = [*rules, *ignored]
    strange = [Violation(UNEXPECTED, str(name)) for name in frame if name not in wanted]
    missing = [Violation(MISSING, name) for name in wanted if name not in frame]
    there = [name for name in rules if name in frame]
    cells = [
        violation
        for name in there
        for violation in _cell_violations(frame[name], rules[name])
    ]
    return [
        *sorted(cells, key=lambda violation: violation.line or 0),
        *strange,
        *missing,
    ]


def _cell_violations(
    cells: pd.Series[Any], rules: Mapping[str, Rule]
) -> Iterator[Violation]:
    for rule, holds in rules.items():
        for line, value in cells[~holds(cells).astype(bool)].items():
            yield Violation(rule, str(cells.name), int(str(line)), value)
