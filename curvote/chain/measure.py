"""What is measured, and what it is measured of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from curvote.chain.tables import TEXT, Table
from curvote.errors import InternalError

LineStyle = str | tuple[float, tuple[float, ...]]

# The ends of what a score is known to lie between, where it is known by an interval.
ENDS: Final = ("lower", "upper")
# One row for each metric of each method; what tells cells apart stands in the plan.
SCORES: Final = Table(
    "scores",
    {
        "method": TEXT,
        "metric": TEXT,
        "value": "float64",
        "group": TEXT,
        **dict.fromkeys(ENDS, "float64"),
    },
    side="client (study)",
    unit="score",
    optional=("group", *ENDS),
)


@dataclass(frozen=True)
class Metric:
    """A number that a study knows: its unit, which way is better, how it is shown.

    ``shown`` "percent" multiplies by 100. A metric ``beside`` another one is a note on
    that one's rows, not a row of its own: how often something happened, 0 where nobody
    tells it, or with a ``spread`` a second measure, with a standard error of its own
    and null where it was not measured. ``said`` is how a sentence goes on after who
    has it, with {value} in it, and ``words`` say what it is; in them and in ``label``
    {record} is what the data call a record. ``bound`` names the fact of the data that
    holds the best value possible, where it is known. One without a ``figure`` stands in
    tables only, or in figures of its system's own. One that is told of ``each`` class,
    say, has a score for every group called so; pages have a section for it.
    """

    name: str
    label: str
    better: Literal["lower", "higher"] = "lower"
    shown: Literal["percent", "number"] = "percent"
    beside: str = ""
    said: str = ""
    words: str = ""
    bound: str = ""
    spread: bool = False
    figure: bool = True
    each: str = ""

    def __post_init__(self) -> None:
        if self.spread and not self.beside:
            raise InternalError(f"metric {self.name}: its standard error is its row's")

    @property
    def columns(self) -> tuple[str, ...]:
        """What it adds to rows of the metric that it stands beside."""
        return (self.name, f"{self.name}_se")[: 1 + self.spread]

    @property
    def untold(self) -> float | None:
        """What stands there where no score tells it."""
        return None if self.spread else 0.0


@dataclass(frozen=True)
class Look:
    """How one method is drawn. Dashed lines are comparisons that only a study has."""

    colour: str
    marker: str
    line: LineStyle = "-"
    width: float = 1.3
    size: float = 4.5
    above: int = 3


@dataclass(frozen=True)
class Method:
    """What is measured: its name in tables, a label, one sentence, and its look.

    ``rank`` is its place in tables and legends, the same in all systems. ``study_only``
    marks what no real deployment could do, ``reference`` what others are held against.
    What is ``spoken`` of stands beside the headline, in these words. What is ``free``
    costs no epsilon: nothing is sent.
    """

    name: str
    label: str
    words: str
    look: Look
    rank: int
    study_only: bool = False
    reference: bool = False
    spoken: str = ""
    free: bool = False
