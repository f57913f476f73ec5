"""Which scores changed between two runs, and which of them beyond chance.

Two runs with the same seed and source share the replicates of the same number: their
difference is taken in each (paired). Others are independent (Welch 1947). Student's
law gives p; Holm (1979) bounds the chance that any score is called changed which is
not, however scores depend on one another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from scipy.special import stdtr

from curvote.chain.axis import REPLICATE, Cell
from curvote.chain.measure import ENDS, Metric
from curvote.run.config.settings import labels_of
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.results import systems_of
from curvote.run.summary import ALWAYS, plain, scores

ALPHA: Final = 0.05
_FEWEST: Final = 2  # replicates: one number has no spread
_ROUNDING: Final = 16 * float(np.finfo(float).eps)  # of a mean or a difference
Test = Literal["paired", "welch", ""]
Where = tuple[tuple[str, Any], ...]
Floats = np.ndarray[Any, Any]
Each = Mapping[Where, "pd.Series[float]"]


@dataclass(frozen=True)
class Change:
    """A score of two runs: both means, their difference B - A and how sure it is.

    ``n`` are the replicates that count: of a pair the shared ones, else those of A and
    of B. ``se``, ``z`` (difference by standard error), ``df`` and ``p`` are None where
    nothing can be claimed; ``said`` is the verdict in words.
    """

    where: Mapping[str, Any]
    metric: Metric
    a: float
    b: float
    test: Test
    n: tuple[int, ...]
    se: float | None = None
    df: float | None = None
    beyond: bool = False
    said: str = ""

    @property
    def cell(self) -> Cell:
        """Where it was measured."""
        own = ((k, v) for k, v in self.where.items() if k not in ("method", "metric"))
        there = ((k, v) for k, v in own if v is not None and v != "")
        return Cell.of({k: v if isinstance(v, str) else float(v) for k, v in there})

    def shown(self, value: float) -> str:
        """Return a value of it as people read it: 12.71 %."""
        percent = self.metric.shown == "percent"
        return f"{100 * value:.2f} %" if percent else f"{value:.3f}"

    @property
    def difference(self) -> float:
        """B - A."""
        return self.b - self.a

    @property
    def z(self) -> float | None:
        """The difference in standard errors."""
        return self.difference / self.se if self.se else None

    @property
    def p(self) -> float | None:
        """How often chance alone makes it as large, by Student's law."""
        if self.z is None or self.df is None:
            return None
        return float(2 * stdtr(self.df, -abs(self.z)))

    def row(self) -> dict[str, Any]:
        """Return it as ``diff --json`` prints it."""
        told = ("a", "b", "difference", "se", "z", "df", "p", "test")
        own = {name: getattr(self, name) for name in told}
        verdict = {"beyond_chance": self.beyond, "verdict": self.said}
        named = self.where.items()
        where = {name: value for name, value in named if value is not None}
        where = dict.fromkeys(ALWAYS) | where  # as `scores --json` has them
        return where | own | {"replicates": list(self.n)} | verdict


def score_changes(project: Project, one: RunRecord, other: RunRecord) -> list[Change]:
    """Return every score that both runs have, with the verdict on its change.

    UserError: an artifact of theirs is missing or altered.
    """
    metrics = {m.name: m for run in (one, other) for m in _metrics(run)}
    before, after = _each(project, one, metrics), _each(project, other, metrics)
    test: Test = "paired" if share_replicates(one, other) else "welch"
    found = [
        _change(dict(where), metrics, before[where], after[where], test)
        for where in before
        if where in after
    ]
    return _judged(found)


def share_replicates(one: RunRecord, other: RunRecord) -> bool:
    """Say whether replicates of one number stand for the same draws in both runs."""
    return all(one.config.get(k) == other.config.get(k) for k in ("seed", "source"))


def _metrics(record: RunRecord) -> Iterator[Metric]:
    """Yield what is a measure; a note on another one's rows is none."""
    every = (metric for one in systems_of(record) for metric in one.metrics)
    yield from (metric for metric in every if metric.spread or not metric.beside)


def _each(project: Project, record: RunRecord, among: Iterable[str]) -> Each:
    """Return the value in each replicate of each score that is a number."""
    table = scores(project, record)
    if table.empty:
        return {}
    table = table[table["metric"].isin(list(among)) & table["value"].notna()]
    labels = labels_of(record.config)
    repeated = {index.name for one in systems_of(record) for index in one.index}
    names = [c for c in table.columns if c not in {"value", *ENDS, *repeated}]
    found = {}
    for key, group in table.groupby(names, dropna=False, sort=False):
        where = dict(zip(names, map(plain, key), strict=True))
        setting = where.pop("setting")
        pairs = (*where.items(), *(labels[setting].items() if setting else ()))
        found[pairs] = group.groupby(REPLICATE.name)["value"].mean()
    return found


def _change(
    where: dict[str, Any],
    metrics: Mapping[str, Metric],
    before: pd.Series[float],
    after: pd.Series[float],
    test: Test,
) -> Change:
    metric = metrics[where["metric"]]
    both = before.index.intersection(after.index)
    if test == "paired" and len(both):
        a, b = before[both], after[both]
        sure = _paired(a.to_numpy(), b.to_numpy())
        n: tuple[int, ...] = (len(both),)
    else:
        test, a, b = "welch", before, after
        sure, n = _welch(a.to_numpy(), b.to_numpy()), (len(a), len(b))
    means = float(a.mean()), float(b.mean())
    same = test == "paired" and bool((a == b).all())
    said = "equal" if same else _no_claim(n, sure[0])
    if said:
        return Change(where, metric, *means, "", n, said=said)
    return Change(where, metric, *means, test, n, *sure)


def _no_claim(n: Sequence[int], se: float) -> str:
    """Return why nothing is claimed; empty where something may be."""
    if min(n) < _FEWEST:
        return "one replicate: no claim"
    return "" if se > 0 else "no spread: no claim"


def _paired(a: Floats, b: Floats) -> tuple[float, float]:
    """Return the standard error of the mean difference, and degrees of freedom."""
    n = len(a)
    if n < _FEWEST:
        return 0.0, 0.0
    return math.sqrt(_variance(b - a, a, b) / n), n - 1.0


def _welch(a: Floats, b: Floats) -> tuple[float, float]:
    """Return the same for independent replicates (Welch-Satterthwaite)."""
    if min(len(a), len(b)) < _FEWEST:
        return 0.0, 0.0
    u, v = _variance(a, a) / len(a), _variance(b, b) / len(b)
    if u + v == 0:
        return 0.0, 0.0
    df = (u + v) ** 2 / (u**2 / (len(a) - 1) + v**2 / (len(b) - 1))
    return math.sqrt(u + v), df


def _variance(values: Floats, *of: Floats) -> float:
    """Return the variance; 0 where values differ by the rounding of what they are of.

    0.2 - 0.1 is not 0.3 - 0.2: equal changes would be called certain.
    """
    found = float(values.std(ddof=1))
    largest = max(float(np.abs(each).max()) for each in of)
    return found**2 if found > _ROUNDING * largest else 0.0


def _judged(changes: Sequence[Change]) -> list[Change]:
    """Return the changes with their verdict: from the least p on, as Holm has it."""
    known = [(change.p, i) for i, change in enumerate(changes) if change.p is not None]
    beyond: set[int] = set()
    for rank, (p, i) in enumerate(sorted(known)):
        if p > ALPHA / (len(known) - rank):
            break
        beyond.add(i)
    return [
        change if change.said else _verdict(change, beyond=i in beyond)
        for i, change in enumerate(changes)
    ]


def _verdict(change: Change, *, beyond: bool) -> Change:
    if not beyond:
        return replace(change, said="within chance")
    better = (change.difference < 0) == (change.metric.better == "lower")
    return replace(change, beyond=True, said="better" if better else "worse")
