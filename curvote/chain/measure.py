"""Metrics, methods and scores: the vocabulary of what a system measures."""

from dataclasses import dataclass
from typing import Final, Literal

from curvote.base.errors import InternalError
from curvote.chain.stage import TEXT, Table

LineStyle = str | tuple[float, tuple[float, ...]]

# The ends of what a score is known to lie between, where it is known by an interval.
INTERVAL_ENDS: Final = ("lower", "upper")
# One row for each metric of each method; what tells cells apart stands in the plan.
SCORES: Final = Table(
    "scores",
    {
        "method": TEXT,
        "metric": TEXT,
        "value": "float64",
        "group": TEXT,
        **dict.fromkeys(INTERVAL_ENDS, "float64"),
    },
    side="client (study)",
    unit="score",
    optional=("group", *INTERVAL_ENDS),
)


@dataclass(frozen=True)
class Metric:
    """Number that a study knows: its unit, direction and presentation.

    ``display`` "percent" multiplies by 100. A metric ``beside`` another one is a note
    on that one's rows, not a row of its own: how often something happened, 0 where
    nobody tells it, or with a ``spread`` a second measure, with a standard error of its
    own and null where it was not measured. ``sentence`` is how a sentence goes on after
    who has it, with {value} in it, and ``words`` say what it is; in them and in
    ``label`` {record} is what the data call a record. ``bound`` names the fact of the
    data that holds the best value possible, where it is known. One without a ``figure``
    stands in tables only, or in figures of its system's own. One that ``stands_in`` for
    the metric that it is beside is told where that tells nothing, and then leads. One
    that is told of
    ``group_kind`` class, say, has a score for every group called so; pages have a
    section for it.
    """

    name: str
    label: str
    better: Literal["lower", "higher"] = "lower"
    display: Literal["percent", "number"] = "percent"
    beside: str = ""
    sentence: str = ""
    words: str = ""
    bound: str = ""
    spread: bool = False
    figure: bool = True
    stands_in: bool = False
    group_kind: str = ""

    def __post_init__(self) -> None:
        if self.spread and not self.beside:
            raise InternalError(f"metric {self.name}: its standard error is its row's")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it adds beside another metric."""
        return (self.name, f"{self.name}_se")[: 1 + self.spread]


@dataclass(frozen=True)
class Look:
    """Style in which one method is drawn; dashed lines are study-only."""

    colour: str
    marker: str
    line: LineStyle = "-"
    width: float = 1.3
    size: float = 4.5
    above: int = 3


@dataclass(frozen=True)
class Method:
    """Method that scores are measured of: name, label, one sentence and look.

    ``rank`` is its place in tables and legends, the same in all systems. ``study_only``
    marks what no real deployment could do, ``reference`` what others are held against.
    What is ``short_phrase`` of stands beside the headline, in these words. What is
    ``free`` costs no epsilon: nothing is sent.
    """

    name: str
    label: str
    words: str
    look: Look
    rank: int
    study_only: bool = False
    reference: bool = False
    short_phrase: str = ""
    free: bool = False
