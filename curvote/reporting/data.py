"""What a report is made of: typed tables and facts, and the score table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from curvote.chain.sent import Sent
from curvote.client.ledger import Entry
from curvote.errors import InternalError
from curvote.protocols.outside import Outside
from curvote.reporting.card import Card
from curvote.reporting.methods import METHODS
from curvote.representation.rescale import UNBOUNDED
from curvote.run.audited import Loss

FloatArray = NDArray[np.float64]

SCORE_COLUMNS = (
    "pipeline",
    "protocol",
    "epsilon",
    "learner",
    "method",
    "misclassification",
    "se",
    "replicates",
    "none_passed",
)
NOTHING = "\N{EN DASH}"  # a cell for which nothing was computed
ROLES = ("public", "train", "vote", "test")


@dataclass(frozen=True, eq=False)
class CurveSample:
    """Records that may be shown: volunteers' (public by consent) or simulated ones.

    ``grid[T]`` in ``unit`` over ``domain``; ``curves[n, T]`` as recorded,
    ``fitted[n, T]`` their projections, ``z[n, d]`` before noise,
    ``labels[n]`` 0 or 1 for ``classes`` (negative, positive). ``basis`` and
    ``rescale`` are words, such as "4 cubic B-splines".
    """

    grid: FloatArray
    unit: str
    domain: tuple[float, float]
    curves: FloatArray
    fitted: FloatArray
    z: FloatArray
    labels: NDArray[np.int64]
    classes: tuple[str, str]
    basis: str
    rescale: str
    who: str

    def __post_init__(self) -> None:
        if self.who not in ("volunteers", "simulated"):
            raise InternalError(f"records of {self.who!r} are not public: not drawn")
        shape = (len(self.labels), len(self.grid))
        if self.curves.shape != shape or self.fitted.shape != shape:
            raise InternalError(
                f"curves {self.curves.shape}, fitted"
                f" {self.fitted.shape}: both must be {shape}"
            )
        if len(self.z) != len(self.labels):
            raise InternalError(f"z holds {len(self.z)} rows, not {len(self.labels)}")

    @property
    def bounded(self) -> bool:
        """Whether z lies in [-1, 1]; a direction needs no bounds."""
        return self.rescale.partition(" ")[0] not in UNBOUNDED


@dataclass(frozen=True, eq=False)
class DataCard:
    """The card of a published data set and its figure, an SVG drawing."""

    card: Card
    svg: bytes


@dataclass(frozen=True, eq=False)
class PageData:
    """Everything one report shows, from tables only.

    ``title`` names the data set. ``scores`` has ``SCORE_COLUMNS``; misclassification,
    se and none_passed (the share of replicates in which no classifier passed the
    cutoff, missing where the method has no cutoff) lie in [0, 1]; ``learner`` is
    missing for methods that have none. ``utilities`` has epsilon, learner, utility
    (estimated, before reversal, not clipped). ``clients`` maps a role of ``ROLES`` to
    (asked, least, most) over the replicates. ``bayes_error`` in [0, 1] where it is
    known. ``overrides`` are the ``a.b=v`` texts of ``--set``. ``record`` is the word
    for one record. ``curves`` is None where no record may be shown. ``card`` is that
    of a published data set, ``clipped`` the share of values outside their bounds; both
    in studies only. ``losses`` are the exact privacy losses of the messages,
    ``audited`` says what an audit found, and
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
    utilities: pd.DataFrame
    cutoff: float
    curves: CurveSample | None
    clients: Mapping[str, tuple[int, int, int]]
    groups: str | None
    releases: Sequence[Sent]
    public: Sequence[str]
    volunteers: int
    notes: Sequence[str] = ()
    bayes_error: float | None = None
    private: bool = False
    overrides: Sequence[str] = ()
    clipped: float | None = None
    card: DataCard | None = None
    losses: Sequence[Loss] = ()
    audited: str = ""
    ledger: Sequence[Entry] = ()
    outside: Sequence[tuple[str, Outside]] = ()
    record: str = "curve"

    def __post_init__(self) -> None:
        missing = set(SCORE_COLUMNS) - set(self.scores.columns)
        if missing:
            raise InternalError(f"scores lack the columns {sorted(missing)}")


def with_series(scores: pd.DataFrame) -> pd.DataFrame:
    """Add ``series``: the method, after the protocol where a column mixes several."""
    if "series" in scores:
        return scores
    mixed = scores.groupby("learner", dropna=False)["protocol"].nunique()
    if scores["protocol"].nunique() < 2 or (mixed < 2).all():
        return scores.assign(series=scores["method"])
    return scores.assign(series=scores["protocol"] + ": " + scores["method"])


def series_names(scores: pd.DataFrame) -> list[str]:
    """Return the series in the fixed order of ``METHODS``, unknown methods last."""
    order = {key: rank for rank, key in enumerate(METHODS)}
    names = with_series(scores)["series"].drop_duplicates()
    return sorted(names, key=lambda s: order.get(s.rpartition(": ")[2], len(order)))


def learners(table: pd.DataFrame) -> list[str]:
    """Return the learners of a table in the order in which they first appear."""
    return [str(name) for name in table["learner"].dropna().drop_duplicates()]


def epsilons(table: pd.DataFrame) -> list[float]:
    """Return the privacy levels of a table, smallest first."""
    return sorted(float(value) for value in table["epsilon"].unique())


def level(epsilon: float) -> str:
    """Write a privacy level; an infinite one is none."""
    return "none" if math.isinf(epsilon) else f"{epsilon:g}"


def percent(value: float | None, digits: int = 1) -> str:
    """Write a share in [0, 1] as percent points without the sign; missing as a dash."""
    if value is None or math.isnan(value):
        return NOTHING
    return f"{100 * value:.{digits}f}"


def with_error(value: float | None, se: float | None, digits: int = 2) -> str:
    """Write ``11.92 ± 0.10``: percent points and one standard error, where known."""
    parts = percent(value, digits), percent(se, digits)
    return parts[0] if NOTHING in parts else " ± ".join(parts)


def best(scores: pd.DataFrame) -> pd.Series:
    """Tell for each row whether no row of its epsilon shows a lower error."""
    shown = (100 * scores["misclassification"].astype(float)).round(2)
    lowest = shown.groupby(scores["epsilon"]).transform("min")
    return shown.eq(lowest)


def score_table(scores: pd.DataFrame, mark: str = "") -> pd.DataFrame:
    """Return the scores as text: rows (epsilon, method), columns learners.

    A cell reads ``11.92 ± 0.10`` (percent, one standard error), a dash where nothing
    was computed; ``mark`` is appended to the best of each epsilon. A method without a
    learner fills the whole row. Methods stand in the order of ``METHODS``.
    """
    columns = learners(scores) or ["all"]
    rows = with_series(scores)[["epsilon", "series", "learner"]].copy()
    texts = map(with_error, scores["misclassification"], scores["se"])
    rows["text"] = [
        text + mark * win for text, win in zip(texts, best(scores), strict=True)
    ]
    everywhere = rows["learner"].isna()
    copies = [rows[everywhere].assign(learner=name) for name in columns]
    rows = pd.concat([rows[~everywhere], *copies])
    table = rows.set_index(["epsilon", "series", "learner"])["text"].unstack("learner")
    wanted = [
        (epsilon, series)
        for epsilon in epsilons(scores)
        for series in series_names(scores)
        if (epsilon, series) in table.index
    ]
    index = pd.MultiIndex.from_tuples(wanted, names=["epsilon", "method"])
    return table.reindex(index=index, columns=columns).fillna(NOTHING)
