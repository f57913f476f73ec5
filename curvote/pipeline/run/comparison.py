"""Comparison of two runs: tests of score changes, and all other differences.

Two runs with the same seed and source share the replicates of the same number: their
difference is taken in each (paired). Others are independent (Welch 1947). Student's
law gives p; Holm (1979) bounds the chance that any score is called changed which is
not, however scores depend on one another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from scipy.special import stdtr

from curvote.base.errors import UserError
from curvote.chain.axis import REPLICATE, Cell
from curvote.chain.measure import INTERVAL_ENDS, Metric
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.settings import labels_by_setting
from curvote.pipeline.plan.step import differences
from curvote.pipeline.run import history, results, run_object
from curvote.pipeline.store.artifacts import artifact
from curvote.pipeline.store.records import RunRecord

MISSING_ARTIFACT: Final = (
    "unknown: the artifact of {which} is not there, or not any more"
)


@dataclass(frozen=True)
class KeyChange:
    """A cell of a stage whose key differs; None: that run has no such cell.

    ``reasons`` are all that differs between the two, in words.
    """

    stage: str
    cell: Cell
    a: str | None
    b: str | None
    reasons: tuple[str, ...]

    def row(self) -> dict[str, Any]:
        """Return the change as ``diff --json`` prints it."""
        cell, reasons = str(self.cell), list(self.reasons)
        values = {"stage": self.stage, "cell": cell, "a": self.a, "b": self.b}
        return values | {"reasons": reasons}


def changed_keys(
    project: Project, first: RunRecord, second: RunRecord
) -> tuple[list[KeyChange], int]:
    """Return the cells whose key differs, and the number of other cells."""
    before, after = history.step_keys(first), history.step_keys(second)
    places = [*after, *(place for place in before if place not in after)]
    changes = [
        KeyChange(stage, cell, a, b, tuple(_key_reasons(project, stage, a, b)))
        for stage, cell in places
        for a, b in [(before.get((stage, cell)), after.get((stage, cell)))]
        if a != b
    ]
    return changes, len(places) - len(changes)


def group_key_changes(keys: Sequence[KeyChange]) -> list[tuple[str, str, str]]:
    """Return (stage, cell, reasons) rows; equal reasons of a stage are merged."""
    rows = []
    for (stage, why), group in groupby(keys, attrgetter("stage", "reasons")):
        cells = list(group)
        cell = str(cells[0].cell) if len(cells) == 1 else f"{len(cells)} cells"
        rows.append((stage, cell, "; ".join(why)))
    return rows


def _key_reasons(
    project: Project, stage: str, a: str | None, b: str | None
) -> Iterator[str]:
    """Yield the reasons for a changed key; changed inputs only if alone."""
    if a is None or b is None:
        yield "only in B" if a is None else "only in A"
        return
    pair = {"A": artifact(project, stage, a), "B": artifact(project, stage, b)}
    missing = [which for which, there in pair.items() if there.problem(content=False)]
    if missing:
        yield MISSING_ARTIFACT.format(which=" and ".join(missing))
        return
    old, new = (there.manifest["components"] for there in pair.values())
    reasons = list(differences(old, new)) or ["what it depends on changed"]
    yield from [r for r in reasons if not r.startswith(history.INPUT_PREFIX)] or reasons


ALPHA: Final = 0.05
_MIN_REPLICATES: Final = 2  # replicates: one number has no spread
_ROUNDING_ERROR: Final = 16 * float(np.finfo(float).eps)  # of a mean or a difference
Test = Literal["paired", "welch", ""]
Where = tuple[tuple[str, Any], ...]
Floats = np.ndarray[Any, Any]
ReplicateScores = Mapping[Where, "pd.Series[float]"]


@dataclass(frozen=True)
class ScoreChange:
    """A score of two runs: both means, their difference B - A and its test.

    ``n`` are the replicates that count: of a pair the shared ones, else those of A and
    of B. ``se``, ``z`` (difference by standard error), ``df`` and ``p`` are None where
    nothing can be claimed; ``verdict`` is the verdict in words.
    """

    where: Mapping[str, Any]
    metric: Metric
    a: float
    b: float
    test: Test
    n: tuple[int, ...]
    se: float | None = None
    df: float | None = None
    significant: bool = False
    verdict: str = ""

    @property
    def cell(self) -> Cell:
        """The cell of the score."""
        pairs = ((k, v) for k, v in self.where.items() if k not in ("method", "metric"))
        present = ((k, v) for k, v in pairs if v is not None and v != "")
        values = {k: v if isinstance(v, str) else float(v) for k, v in present}
        return Cell.from_mapping(values)

    def format_value(self, value: float) -> str:
        """Return a value in the metric's display: 12.71 %."""
        percent = self.metric.display == "percent"
        return f"{100 * value:.2f} %" if percent else f"{value:.3f}"

    @property
    def difference(self) -> float:
        """The difference of the means, B - A."""
        return self.b - self.a

    @property
    def z(self) -> float | None:
        """The difference in standard errors."""
        return self.difference / self.se if self.se else None

    @property
    def p(self) -> float | None:
        """The two-sided p-value by Student's law; None: no test."""
        if self.z is None or self.df is None:
            return None
        return float(2 * stdtr(self.df, -abs(self.z)))

    def row(self) -> dict[str, Any]:
        """Return the change as ``diff --json`` prints it."""
        names = ("a", "b", "difference", "se", "z", "df", "p", "test")
        values = {name: getattr(self, name) for name in names}
        verdict = {"beyond_chance": self.significant, "verdict": self.verdict}
        named = self.where.items()
        where = {name: value for name, value in named if value is not None}
        # The columns are those of `scores --json`.
        where = dict.fromkeys(results.ALWAYS_COLUMNS) | where
        return where | values | {"replicates": list(self.n)} | verdict


def compare_scores(
    project: Project, first: RunRecord, second: RunRecord
) -> list[ScoreChange]:
    """Return every score that both runs have, with the verdict on its change.

    UserError: an artifact of theirs is missing or altered.
    """
    metrics = {m.name: m for run in (first, second) for m in _declared_metrics(run)}
    runs = first, second
    before, after = (_replicate_scores(project, run, metrics) for run in runs)
    test: Test = "paired" if share_replicates(first, second) else "welch"
    changes = [
        _test_change(dict(where), metrics, before[where], after[where], test)
        for where in before
        if where in after
    ]
    return _with_verdicts(changes)


def share_replicates(first: RunRecord, second: RunRecord) -> bool:
    """Return whether equal replicate numbers mean equal draws in both runs."""
    return all(first.config.get(k) == second.config.get(k) for k in ("seed", "source"))


def _declared_metrics(record: RunRecord) -> Iterator[Metric]:
    """Yield the metrics of a run, without additional columns of others.

    Nor what stands in for another: the more is tested, the less is beyond chance.
    """
    for member in results.run_systems(record):
        for metric in member.metrics:
            if not metric.beside or (metric.spread and not metric.stands_in):
                yield metric


def _replicate_scores(
    project: Project, record: RunRecord, among: Iterable[str]
) -> ReplicateScores:
    table = results.replicate_scores(project, record)
    if table.empty:
        return {}
    table = table[table["metric"].isin(list(among)) & table["value"].notna()]
    labels = labels_by_setting(record.config)
    repeated = {
        index.name for member in results.run_systems(record) for index in member.index
    }
    names = [c for c in table.columns if c not in {"value", *INTERVAL_ENDS, *repeated}]
    by_score = {}
    for key, group in table.groupby(names, dropna=False, sort=False):
        where = dict(zip(names, map(results.missing_to_none, key), strict=True))
        setting = where.pop("setting")
        pairs = (*where.items(), *(labels[setting].items() if setting else ()))
        by_score[pairs] = group.groupby(REPLICATE.name)["value"].mean()
    return by_score


def _test_change(
    where: dict[str, Any],
    metrics: Mapping[str, Metric],
    before: pd.Series[float],
    after: pd.Series[float],
    test: Test,
) -> ScoreChange:
    metric = metrics[where["metric"]]
    shared = before.index.intersection(after.index)
    if test == "paired" and len(shared):
        a, b = before[shared], after[shared]
        statistics = _paired_error(a.to_numpy(), b.to_numpy())
        n: tuple[int, ...] = (len(shared),)
    else:
        test, a, b = "welch", before, after
        statistics, n = _welch_error(a.to_numpy(), b.to_numpy()), (len(a), len(b))
    means = float(a.mean()), float(b.mean())
    same = test == "paired" and bool((a == b).all())
    verdict = "" if statistics[0] > 0 else "no spread: no claim"
    if min(n) < _MIN_REPLICATES:
        verdict = "one replicate: no claim"
    if same:
        verdict = "equal"
    if verdict:
        return ScoreChange(where, metric, *means, "", n, verdict=verdict)
    return ScoreChange(where, metric, *means, test, n, *statistics)


def _paired_error(a: Floats, b: Floats) -> tuple[float, float]:
    """Return the standard error of the mean difference, and degrees of freedom."""
    n = len(a)
    if n < _MIN_REPLICATES:
        return 0.0, 0.0
    return math.sqrt(_rounded_variance(b - a, a, b) / n), n - 1.0


def _welch_error(a: Floats, b: Floats) -> tuple[float, float]:
    """Return standard error and degrees of freedom of independent means."""
    if min(len(a), len(b)) < _MIN_REPLICATES:
        return 0.0, 0.0
    u, v = _rounded_variance(a, a) / len(a), _rounded_variance(b, b) / len(b)
    if u + v == 0:
        return 0.0, 0.0
    df = (u + v) ** 2 / (u**2 / (len(a) - 1) + v**2 / (len(b) - 1))
    return math.sqrt(u + v), df


def _rounded_variance(values: Floats, *terms: Floats) -> float:
    """Return the variance; 0 if values differ by rounding errors only.

    0.2 - 0.1 is not 0.3 - 0.2: equal changes would be called certain.
    """
    deviation = float(values.std(ddof=1))
    largest = max(float(np.abs(term).max()) for term in terms)
    return deviation**2 if deviation > _ROUNDING_ERROR * largest else 0.0


def _with_verdicts(changes: Sequence[ScoreChange]) -> list[ScoreChange]:
    """Return the changes with verdicts by Holm's procedure."""
    tested = [(change.p, i) for i, change in enumerate(changes) if change.p is not None]
    significant: set[int] = set()
    for rank, (p, i) in enumerate(sorted(tested)):
        if p > ALPHA / (len(tested) - rank):
            break
        significant.add(i)
    verdicts = []
    for i, change in enumerate(changes):
        better = (change.difference < 0) == (change.metric.better == "lower")
        verdict = "better" if better else "worse"
        beyond = i in significant
        verdict = verdict if beyond else change.verdict or "within chance"
        verdicts.append(replace(change, significant=beyond, verdict=verdict))
    return verdicts


@dataclass(frozen=True)
class RunComparison:
    """The differences between runs ``a`` and ``b``.

    ``same`` counts the cells of equal keys; ``notes`` say what could not be compared
    and how scores were.
    """

    a: RunRecord
    b: RunRecord
    settings: list[history.SettingChange]
    keys: list[KeyChange]
    same: int
    scores: list[ScoreChange]
    notes: list[str]
    pages: tuple[Path | None, Path | None]

    @property
    def significant(self) -> list[ScoreChange]:
        """The scores that changed beyond chance."""
        return [change for change in self.scores if change.significant]

    @property
    def describe_count(self) -> str:
        """The number of changed scores in words, and the closest if none did."""
        summary = f"{len(self.significant)} of {len(self.scores)} changed beyond chance"
        tested = [change for change in self.scores if change.p is not None]
        if self.significant or not tested:
            return summary
        near = min(tested, key=lambda change: change.p or 0.0)
        where = ", ".join(filter(None, (near.where["method"], str(near.cell))))
        return f"{summary}; the closest has z {near.z:+.1f} ({where})"

    def to_document(self) -> dict[str, Any]:
        """Return the document that ``diff --json`` prints."""
        settings = [{"path": s.path, "a": s.a, "b": s.b} for s in self.settings]
        return {
            "a": _record_values(self.a),
            "b": _record_values(self.b),
            "configuration": settings,
            "keys": [renamed.row() for renamed in self.keys],
            "keys_equal": self.same,
            "scores": [change.row() for change in self.scores],
            "notes": self.notes,
            "figures": [str(page) if page else None for page in self.pages],
        }


def compare_runs(project: Project, a: str, b: str) -> RunComparison:
    """Compare two runs, each named by its id or by its pipeline.

    UserError: there is no such run, or it could not even be planned.
    """
    first, second = run_object.find_run(project, a), run_object.find_run(project, b)
    for run in (first, second):
        run_object.require_plan(run)
    keys, same = changed_keys(project, first, second)
    scores, notes = _compare_scores(project, first, second)
    return RunComparison(
        a=first,
        b=second,
        settings=history.changed_settings(first, second),
        keys=keys,
        same=same,
        scores=scores,
        notes=notes,
        pages=(
            run_object.find_page(project, first),
            run_object.find_page(project, second),
        ),
    )


def _compare_scores(
    project: Project, first: RunRecord, second: RunRecord
) -> tuple[list[ScoreChange], list[str]]:
    """Return the score changes of two runs, and notes on the comparison."""
    modes = {run.config.get("mode") for run in (first, second)}
    if "production" in modes:
        return [], ["no scores: the truth of a release is not known."]
    unfinished = [r.id for r in (first, second) if r.status != "completed"]
    if unfinished:
        return [], [f"no scores: {', '.join(unfinished)} did not end."]
    try:
        for run in (first, second):
            run_object.require_scores(project, run)
        changes = compare_scores(project, first, second)
    except UserError as error:
        return [], [f"no scores: {error}"]
    if not changes:
        return [], ["no score is in both."]
    n = changes[0].n
    if share_replicates(first, second) and len(n) == 1:
        test = f"paired, {n[0]} shared replicates (same seed and source)"
    else:
        test = f"Welch, {' and '.join(map(str, n))} independent replicates"
    tested = sum(change.p is not None for change in changes)
    if not tested:
        return changes, [f"{test}."]
    meaning = (
        f"{test}. Beyond chance: by Student's law, with Holm's correction for the"
        f" {tested} that can be tested; if none had changed, any would be called so in"
        f" at most {100 * ALPHA:g} % of comparisons."
    )
    return changes, [meaning]


def _record_values(record: RunRecord) -> dict[str, Any]:
    names = ("id", "pipeline", "started", "status", "overrides")
    return {name: getattr(record, name) for name in names}
