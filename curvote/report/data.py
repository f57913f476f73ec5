"""Data of a report: typed tables and metadata, methods, and the score table."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from curvote.base.errors import InternalError
from curvote.chain.axis import EPSILON, Axis, Value
from curvote.chain.lookup import all_systems
from curvote.chain.measure import Look, Method, Metric
from curvote.chain.system import MessageDescription
from curvote.ledger.amounts import Entry
from curvote.messages.amplification import ShuffledGuarantee
from curvote.messages.measures import errors_tell_nothing
from curvote.pipeline.run.audit_tasks import MessageLoss
from curvote.pipeline.run.results import RunView

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Section:
    """A section of the page: its name, place, figure and template.

    ``place`` is "numbers" (below the table of scores), "results" (after it), "data",
    "releases" (inside of what left clients) or "end". ``alt_text`` says what its figure
    shows; without one there is none. ``public`` are lines on what is public before any
    noise, ``estimates`` is what it calls a stand-in for unknown errors, ``finding`` is
    the main result, without a full stop, where no true error is known.
    """

    name: ClassVar[str]
    place: ClassVar[str]
    finding: str = ""

    @property
    def alt_text(self) -> str:
        """Return a description of the figure, for readers who cannot see it."""
        return ""

    @property
    def public(self) -> Sequence[str]:
        """Return the facts that are public before any noise, a line each."""
        return ()

    @property
    def estimates(self) -> str:
        """Return the name of an estimate of the unknown error, "" if none."""
        return ""

    def draw(self, narrow: bool) -> Figure:
        """Draw the figure, wide or for a narrow screen."""
        raise InternalError(f"the section {self.name} has no figure")

    @classmethod
    def template(cls) -> Path:
        """Return the path of the section's template."""
        file = f"{cls.name.replace('-', '_')}.html.j2"
        return Path(inspect.getfile(cls)).with_name(file)


OTHER_LOOK: Final = Look("#7f52a3", "p")
_LAST_RANK = 1 << 30


def methods_by_name() -> dict[str, Method]:
    """Return every method by name: main ones first, references last.

    A name means the same in all systems.
    """
    main = {name for member in all_systems() for name in member.main}
    methods = {m.name: m for member in all_systems() for m in member.methods}

    def place(method: Method) -> tuple[bool, bool, int]:
        return method.reference, method.name not in main, method.rank

    return {m.name: m for m in sorted(methods.values(), key=place)}


def find_method(series: str) -> Method:
    """Return the method of a series; an unknown one has its name as label."""
    protocol, _, name = series.rpartition(": ")
    method = methods_by_name().get(name, Method(name, name, "", OTHER_LOOK, _LAST_RANK))
    return replace(method, label=f"{protocol}: {method.label}") if protocol else method


def series_look(series: str) -> Look:
    """Return the look of a series ("method" or "protocol: method")."""
    return find_method(series).look


def grid_setting(view: RunView) -> str:
    """Return the grid setting of a cell, without its protocol."""
    setting = str(view.cell["setting"] or "")
    return setting.removeprefix(str(view.cell["protocol"])).strip()


def epsilon_distance(view: RunView) -> float:
    """Return the distance of a cell's epsilon from 1 on a log scale."""
    return abs(math.log(view.cell["epsilon"] or 1.0))


FloatArray = NDArray[np.float64]

SCORE_COLUMNS = (
    *("pipeline", "protocol", "level", "learner", "method"),
    *("metric", "value", "se", "replicates"),
)
NO_VALUE = "\N{EN DASH}"  # a cell for which nothing was computed


@dataclass(frozen=True, eq=False)
class PageData:
    """The data that one report shows, from tables only.

    ``title`` names the data set. ``scores`` has ``SCORE_COLUMNS``: a mean for each
    level of the axis ``x`` (infinite without one), ``learner`` (the column it stands
    in; missing for methods that have none), method and metric. ``metrics`` are what was
    measured, the headline's first, ``bounds`` the best values possible, where they are
    known, and ``main`` the methods of each protocol that a headline may state.
    ``sections`` are what only the systems of this run have. ``overrides`` are the
    ``a.b=v`` texts of ``--set``. ``record`` is the word for one record. ``losses`` are
    the exact privacy losses of the messages, ``audited`` says what an audit found, and
    ``ledger`` holds the entries of these releases and ``outside`` what is left of each
    message for who sees the shuffled table only, in production.
    """

    pipeline: str
    title: str
    replicates: int
    seed: int
    protocol: str
    generated: str
    run_id: str
    scores: pd.DataFrame
    metrics: Sequence[Metric]
    main: Mapping[str, Sequence[str]]
    releases: Sequence[MessageDescription]
    public: Sequence[str] = ()
    sections: Sequence[Section] = ()
    x: Axis = EPSILON
    bounds: Mapping[str, float] = field(default_factory=dict)
    notes: Sequence[str] = ()
    private: bool = False
    overrides: Sequence[str] = ()
    losses: Sequence[MessageLoss] = ()
    audited: str = ""
    ledger: Sequence[Entry] = ()
    outside: Sequence[tuple[str, ShuffledGuarantee]] = ()
    record: str = "curve"

    def __post_init__(self) -> None:
        missing = set(SCORE_COLUMNS) - set(self.scores.columns)
        if missing:
            raise InternalError(f"scores lack the columns {sorted(missing)}")

    def metric_scores(self, metric: Metric) -> pd.DataFrame:
        """Return the scores of a metric."""
        return pd.DataFrame(self._series[self._series["metric"] == metric.name])

    @cached_property
    def _series(self) -> pd.DataFrame:
        return add_series(self.scores)

    @cached_property
    def measured_metrics(self) -> list[Metric]:
        """The metrics with known values; first those that stand in for another.

        They do where no privacy errs as often as the majority, and are left out
        elsewhere.
        """
        leads = errors_tell_nothing(self.scores.to_dict("records"))
        measured = [
            metric
            for metric in self.metrics
            if self.metric_scores(metric)["value"].notna().any()
            and (leads or not metric.stands_in)
        ]
        return sorted(measured, key=lambda metric: not metric.stands_in)

    @property
    def figure_metrics(self) -> list[Metric]:
        """The measured metrics that have a figure of their own."""
        return [m for m in self.measured_metrics if m.figure]

    def metric_label(self, metric: Metric) -> str:
        """Return a metric's label, with the word for a record."""
        return metric.label.format(record=self.record)


def add_series(scores: pd.DataFrame) -> pd.DataFrame:
    """Return scores with ``series``: the method, with its protocol if mixed."""
    if "series" in scores:
        return scores
    mixed = scores.groupby(["learner", "method"], dropna=False)["protocol"].nunique()
    if scores["protocol"].nunique() < 2 or (mixed < 2).all():
        return scores.assign(series=scores["method"])
    return scores.assign(series=scores["protocol"] + ": " + scores["method"])


def series_names(scores: pd.DataFrame) -> list[str]:
    """Return the series in the fixed order of methods, unknown ones last."""
    order = {name: rank for rank, name in enumerate(methods_by_name())}
    names = add_series(scores)["series"].drop_duplicates()
    return sorted(names, key=lambda s: order.get(s.rpartition(": ")[2], len(order)))


def learners(table: pd.DataFrame) -> list[str]:
    """Return the learners of a table in the order in which they first appear."""
    return [str(name) for name in table["learner"].dropna().drop_duplicates()]


def sorted_levels(table: pd.DataFrame) -> list[Value]:
    """Return the levels of a table: numbers sorted, others in given order."""
    distinct: list[Value] = list(table["level"].drop_duplicates())
    return sorted(distinct) if are_numbers(distinct) else distinct


def are_numbers(levels: Sequence[Value]) -> bool:
    """Return whether all levels are numbers."""
    return not any(isinstance(value, str) for value in levels)


def format_level(value: Value) -> str:
    """Return a level as text; an infinite one is "none"."""
    if isinstance(value, str):
        return value
    return "none" if math.isinf(value) else f"{value:g}"


def display_factor(metric: Metric) -> int:
    """Return the factor by which a metric is multiplied for display."""
    return 100 if metric.display == "percent" else 1


def display_unit(metric: Metric) -> str:
    """Return the unit after a metric's value in a sentence."""
    return " %" if metric.display == "percent" else ""


def format_percent(value: float | None, digits: int = 1) -> str:
    """Return a share in [0, 1] in percent, or a dash for a missing one."""
    return _format_scaled(value, 100, digits)


def format_score(value: float | None, metric: Metric, digits: int = 1) -> str:
    """Return a metric's value in percent, or with two more digits."""
    more = 0 if metric.display == "percent" else 2
    return _format_scaled(value, display_factor(metric), digits + more)


def _format_scaled(value: float | None, times: int, digits: int) -> str:
    if value is None or math.isnan(value):
        return NO_VALUE
    return f"{times * value:.{digits}f}"


def score_table(
    scores: pd.DataFrame, metric: Metric, names: Sequence[str] = (), mark: str = ""
) -> pd.DataFrame:
    """Return the scores as text: rows (level, method), columns learners.

    A cell reads ``11.92 ± 0.10`` (percent, one standard error), a dash where nothing
    was computed; ``mark`` is appended to the best of each level. A method without a
    learner fills the whole row, of all ``names``. Methods stand in their fixed order.
    """
    columns = list(names) or learners(scores) or ["all"]
    rows = add_series(scores)[["level", "series", "learner"]].copy()
    texts = [format_score(value, metric, 2) for value in scores["value"]]
    rounded = pd.to_numeric(pd.Series(texts, scores.index), errors="coerce")
    of_level = rounded.groupby(scores["level"])
    wins = rounded.eq(of_level.transform("min" if metric.better == "lower" else "max"))
    errors = [format_score(se, metric, 2) for se in scores["se"]]
    rows["text"] = [
        (text if NO_VALUE in {text, se} else f"{text} ± {se}") + mark * win
        for text, se, win in zip(texts, errors, wins, strict=True)
    ]
    everywhere = rows["learner"].isna()
    copies = [rows[everywhere].assign(learner=name) for name in columns]
    rows = pd.concat([rows[~everywhere], *copies])
    table = rows.set_index(["level", "series", "learner"])["text"].unstack("learner")
    wanted = [
        (place, series)
        for place in sorted_levels(scores)
        for series in series_names(scores)
        if (place, series) in table.index
    ]
    index = pd.MultiIndex.from_tuples(wanted, names=["level", "method"])
    ordered_table = table.reindex(index=index, columns=columns)
    # Of a column nothing may be known.
    return ordered_table.astype(object).fillna(NO_VALUE)
