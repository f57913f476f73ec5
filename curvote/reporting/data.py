"""What a report is made of: typed tables and facts, and the score table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from curvote.chain.axis import EPSILON, Axis, Value
from curvote.chain.measure import Metric
from curvote.chain.sent import Sent
from curvote.client.ledger import Entry
from curvote.errors import InternalError
from curvote.protocols.outside import Outside
from curvote.reporting.methods import known
from curvote.reporting.section import Section
from curvote.run.audited import Loss

FloatArray = NDArray[np.float64]

SCORE_COLUMNS = (
    "pipeline",
    "protocol",
    "level",
    "learner",
    "method",
    "metric",
    "value",
    "se",
    "replicates",
)
NOTHING = "\N{EN DASH}"  # a cell for which nothing was computed


@dataclass(frozen=True, eq=False)
class PageData:
    """Everything one report shows, from tables only.

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
    releases: Sequence[Sent]
    public: Sequence[str] = ()
    sections: Sequence[Section] = ()
    x: Axis = EPSILON
    bounds: Mapping[str, float] = field(default_factory=dict)
    notes: Sequence[str] = ()
    private: bool = False
    overrides: Sequence[str] = ()
    losses: Sequence[Loss] = ()
    audited: str = ""
    ledger: Sequence[Entry] = ()
    outside: Sequence[tuple[str, Outside]] = ()
    record: str = "curve"

    def __post_init__(self) -> None:
        missing = set(SCORE_COLUMNS) - set(self.scores.columns)
        if missing:
            raise InternalError(f"scores lack the columns {sorted(missing)}")

    def of(self, metric: Metric) -> pd.DataFrame:
        """Return the scores of a metric."""
        return pd.DataFrame(self._series[self._series["metric"] == metric.name])

    @cached_property
    def _series(self) -> pd.DataFrame:
        return with_series(self.scores)

    @cached_property
    def measured(self) -> list[Metric]:
        """The metrics of which some value is known."""
        return [m for m in self.metrics if self.of(m)["value"].notna().any()]

    @property
    def drawn(self) -> list[Metric]:
        """Those of them that have a figure of their own."""
        return [m for m in self.measured if m.figure]

    def label(self, metric: Metric) -> str:
        """Return what a metric is called here."""
        return metric.label.format(record=self.record)


def with_series(scores: pd.DataFrame) -> pd.DataFrame:
    """Add ``series``: the method, after the protocol where a column mixes several."""
    if "series" in scores:
        return scores
    mixed = scores.groupby(["learner", "method"], dropna=False)["protocol"].nunique()
    if scores["protocol"].nunique() < 2 or (mixed < 2).all():
        return scores.assign(series=scores["method"])
    return scores.assign(series=scores["protocol"] + ": " + scores["method"])


def series_names(scores: pd.DataFrame) -> list[str]:
    """Return the series in the fixed order of methods, unknown methods last."""
    order = {name: rank for rank, name in enumerate(known())}
    names = with_series(scores)["series"].drop_duplicates()
    return sorted(names, key=lambda s: order.get(s.rpartition(": ")[2], len(order)))


def learners(table: pd.DataFrame) -> list[str]:
    """Return the learners of a table in the order in which they first appear."""
    return [str(name) for name in table["learner"].dropna().drop_duplicates()]


def levels(table: pd.DataFrame) -> list[Value]:
    """Return the levels of a table: numbers smallest first, others as they came."""
    found: list[Value] = list(table["level"].drop_duplicates())
    return sorted(found) if ordered(found) else found


def ordered(found: Sequence[Value]) -> bool:
    """Say whether levels are numbers, which have an order of their own."""
    return not any(isinstance(value, str) for value in found)


def level(value: Value) -> str:
    """Write a level; an infinite one is none."""
    if isinstance(value, str):
        return value
    return "none" if math.isinf(value) else f"{value:g}"


def scale(metric: Metric) -> int:
    """Return what a metric is multiplied by where it is shown."""
    return 100 if metric.shown == "percent" else 1


def unit(metric: Metric) -> str:
    """Return what stands behind a metric's value in a sentence."""
    return " %" if metric.shown == "percent" else ""


def percent(value: float | None, digits: int = 1) -> str:
    """Write a share in [0, 1] as percent points without the sign; missing as a dash."""
    return _written(value, 100, digits)


def number(value: float | None, metric: Metric, digits: int = 1) -> str:
    """Write a value of a metric: as percent points, or with two digits more."""
    more = 0 if metric.shown == "percent" else 2
    return _written(value, scale(metric), digits + more)


def _written(value: float | None, times: int, digits: int) -> str:
    if value is None or math.isnan(value):
        return NOTHING
    return f"{times * value:.{digits}f}"


def with_error(value: float | None, se: float | None, metric: Metric) -> str:
    """Write ``11.92 ± 0.10``: a value and one standard error, where known."""
    parts = number(value, metric, 2), number(se, metric, 2)
    return parts[0] if NOTHING in parts else " ± ".join(parts)


def best(scores: pd.DataFrame, metric: Metric) -> pd.Series:
    """Tell for each row whether no row of its level shows a better value."""
    shown = [number(value, metric, 2) for value in scores["value"]]
    found = pd.to_numeric(pd.Series(shown, scores.index), errors="coerce")
    ends = found.groupby(scores["level"])
    return found.eq(ends.transform("min" if metric.better == "lower" else "max"))


def score_table(
    scores: pd.DataFrame, metric: Metric, names: Sequence[str] = (), mark: str = ""
) -> pd.DataFrame:
    """Return the scores as text: rows (level, method), columns learners.

    A cell reads ``11.92 ± 0.10`` (percent, one standard error), a dash where nothing
    was computed; ``mark`` is appended to the best of each level. A method without a
    learner fills the whole row, of all ``names``. Methods stand in their fixed order.
    """
    columns = list(names) or learners(scores) or ["all"]
    rows = with_series(scores)[["level", "series", "learner"]].copy()
    values = zip(scores["value"], scores["se"], best(scores, metric), strict=True)
    rows["text"] = [with_error(v, se, metric) + mark * win for v, se, win in values]
    everywhere = rows["learner"].isna()
    copies = [rows[everywhere].assign(learner=name) for name in columns]
    rows = pd.concat([rows[~everywhere], *copies])
    table = rows.set_index(["level", "series", "learner"])["text"].unstack("learner")
    wanted = [
        (place, series)
        for place in levels(scores)
        for series in series_names(scores)
        if (place, series) in table.index
    ]
    index = pd.MultiIndex.from_tuples(wanted, names=["level", "method"])
    shown = table.reindex(index=index, columns=columns)
    return shown.astype(object).fillna(NOTHING)  # of a column nothing may be known
