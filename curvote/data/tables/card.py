"""Card of a user's file for its owner: columns, classes, repeats and remarks.

A card counts records that belong to people. It is for the owner's own terminal: nothing
of it is stored, and nothing that is called public is taken from it. So it never says
where values begin or end: bounds fitted to those would tell of them.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from curvote.base.warning_filters import MANY_OUTSIDE
from curvote.data.tables.cells import ColumnSpans

WIDE: Final = 0.1  # of the bounds, if all values lie in so much of them
FEW: Final = 20  # clients of a class


@dataclass(frozen=True)
class ColumnCard:
    """Counts of a column's values: all, missing, below and above its bounds.

    ``used`` is the share of the bounds in which all values lie, in tenths, rounded up.
    """

    name: str
    lower: float
    upper: float
    values: int
    missing: int
    below: int
    above: int
    constant: bool
    used: float

    @property
    def outside(self) -> int:
        """The number of values outside the bounds."""
        return self.below + self.above

    @property
    def share(self) -> float:
        """The share of values outside the bounds, in [0, 1]."""
        return self.outside / max(self.values, 1)

    def remarks(self) -> Iterator[str]:
        """Yield a sentence for each oddity of the column."""
        bounds = f"[{self.lower:g}, {self.upper:g}]"
        if not self.values:
            yield f"{self.name} has no value at all: leave it out."
            return
        if self.share > MANY_OUTSIDE:
            sides = f"{self.below:,} below and {self.above:,} above"
            yield (
                f"{self.name}: {100 * self.share:.1f} % of its values lie beyond its"
                f" bounds {bounds}, {sides}. Is its unit that of the bounds?"
            )
        if self.constant:
            yield f"{self.name} holds one value only: it tells no classes apart."
        elif self.used <= WIDE:
            yield (
                f"{self.name}: all its values lie in a tenth of its bounds {bounds}."
                " Wide bounds cost accuracy; is its unit that of the bounds?"
            )


@dataclass(frozen=True)
class FileCard:
    """The card of a user's file.

    ``rows`` are those of the file, ``clients`` those that remain, ``classes`` theirs.
    ``repeats`` are records equal to an earlier one, ``repeats_are`` says what became of
    them; ``left_out`` counts clients by the reason for which they are left out,
    ``filled`` values that were missing and are filled with the public centre.
    """

    path: Path
    rows: int
    clients: int
    classes: Mapping[str, int]
    columns: tuple[ColumnCard, ...]
    repeats: int
    repeats_are: str
    left_out: Mapping[str, int]
    filled: int = 0
    more: tuple[str, ...] = ()

    def remarks(self) -> list[str]:
        """Return a sentence for each oddity of the file."""
        column_remarks = (line for column in self.columns for line in column.remarks())
        rare = (
            f"only {n:,} clients are {name!r}: hardly enough to learn from."
            for name, n in self.classes.items()
            if n < FEW
        )
        return [*column_remarks, *rare, *self.more]

    def summary_line(self) -> str | None:
        """Return in one line what was filled, clipped or left out; None for nothing."""
        outside = [column.name for column in self.columns if column.outside]
        beyond = sum(column.outside for column in self.columns)
        total = sum(column.values for column in self.columns)
        counts = {
            f"{_plural(self.filled, 'missing value')} filled with the public"
            " centre": self.filled,
            f"{beyond:,} of {total:,} values beyond their bounds"
            f" ({', '.join(outside)})": beyond,
            f"{_plural(self.repeats, 'repeated record')}"
            f" {self.repeats_are}": self.repeats,
            **{f"{n:,} left out: {why}": n for why, n in self.left_out.items()},
        }
        listed = "; ".join(words for words, n in counts.items() if n)
        return f"{self.path.name}: {listed}" if listed else None

    def to_json(self) -> dict[str, Any]:
        """Return the card as plain JSON values."""
        columns = [asdict(x) | {"outside": x.share} for x in self.columns]
        plain = asdict(self) | {"path": str(self.path), "columns": columns}
        del plain["more"]
        return plain | {"remarks": self.remarks()}


def _plural(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def column_cards(
    names: list[str], spans: ColumnSpans, missing: list[int] | None = None
) -> tuple[ColumnCard, ...]:
    """Return the cards of columns from their spans."""
    lacking = missing or [0] * len(names)
    return tuple(
        ColumnCard(
            name=name,
            lower=float(spans.lower[j]),
            upper=float(spans.upper[j]),
            values=int(spans.values[j]),
            missing=lacking[j],
            below=int(spans.below[j]),
            above=int(spans.above[j]),
            constant=bool(spans.constant[j]),
            used=math.ceil(10 * float(spans.used[j])) / 10,
        )
        for j, name in enumerate(names)
    )
