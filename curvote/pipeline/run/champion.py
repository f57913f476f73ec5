"""Champion of a pipeline: the model that another one replaces only beyond chance.

A pipeline runs again and again, and each new model is compared with the champion. Of
many comparisons some find a difference by chance, so all of them share one error: the
k-th is called at alpha / (k (k + 1)), whose sum is alpha. So while no model is better
than the first, the chance that the champion ever moves is at most alpha, however many
runs there are and whatever they have in common (Bonferroni's inequality).
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.special import ndtr, stdtr

from curvote.base.errors import UserError
from curvote.chain.axis import Cell
from curvote.chain.lookup import find_system
from curvote.pipeline.config import settings
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan.step import json_digest
from curvote.pipeline.run import comparison, results
from curvote.pipeline.store.artifacts import artifact
from curvote.pipeline.store.records import RunRecord, load_record

if TYPE_CHECKING:
    import pandas as pd

    from curvote.chain.measure import Metric


@dataclass(frozen=True)
class ModelScore:
    """The number that a run's model is judged by, and what it is a number of.

    Of a study it is the main score, of ``n`` replicates; of a release (``n`` 0) what
    noised messages tell, the best of ``tries`` classifiers. Numbers of another
    ``basis`` are not comparable.
    """

    run: str
    basis: dict[str, str]
    value: float
    se: float | None
    n: int
    better: str
    tries: int = 1


def score_model(project: Project, record: RunRecord, cell: Cell) -> ModelScore | None:
    """Return the score of a cell's model; None: no number tells of it.

    UserError: what it was computed from is gone.
    """
    source = {k: v for k, v in record.config["source"].items() if k != "path"}
    basis = {"source": json_digest(source)[:16]}
    part = settings.part_of_cell(record.config, cell)
    axis = find_system(part.settings.protocol).x.name
    place = Cell.from_mapping({axis: cell[axis]}).words
    if record.config.get("mode") == "production":
        outcome = results.production_outcomes(project, record).get(cell, {})
        for name in (name for name in outcome if f"{name}_se" in outcome):
            basis["measure"] = f"{name} of a release, {place}"
            value, tries = outcome[name], int(outcome.get("classifiers", 1))
            error = outcome[f"{name}_se"]
            return ModelScore(record.id, basis, value, error, 0, "higher", tries)
        return None
    main = _main_scores(project, record)
    if main is None:
        return None
    places = dict.fromkeys((step["stage"], step["key"]) for step in record.steps)
    parts = [artifact(project, *place).manifest["components"] for place in places]
    basis["data"] = json_digest([p.get("raw") for p in parts if not p["inputs"]])[:16]
    metric, scores = main
    basis["measure"] = f"{metric.name}, {place}"
    n, mean = len(scores), float(scores.mean())
    se = float(scores.std(ddof=1)) / math.sqrt(n) if n > 1 else None
    return ModelScore(record.id, basis, mean, se, n, metric.better)


def _main_scores(
    project: Project, record: RunRecord
) -> tuple[Metric, pd.Series[float]] | None:
    """Return a run's main score in each replicate, with its metric."""
    rows = results.declared_rows(record, results.mean_scores(project, record))
    place = results.main_score_index(record, rows)
    row = {} if place is None else {**rows[place], **rows[place].get("setting", {})}
    metrics = {m.name: m for m in comparison.declared_metrics(record)}
    by_place = comparison.scores_by_replicate(project, record, metrics) if row else {}
    for where, scores in by_place.items():
        if all((row.get(name) or None) == (value or None) for name, value in where):
            return metrics[row["metric"]], scores
    return None


@dataclass(frozen=True)
class Verdict:
    """Why a new model takes the champion's place or does not, in words.

    ``counted`` says that a comparison was made, which has its share of the error.
    """

    words: str
    champion: bool = False
    counted: bool = False


def judge(
    project: Project, champion: ModelScore, new: ModelScore, looks: int
) -> Verdict:
    """Return the verdict on a new model after ``looks`` comparisons before it."""
    if champion.basis != new.basis:
        before = champion.basis
        differing = [k for k in new.basis if before.get(k) != new.basis[k]]
        which = " and ".join(f"another {name}" for name in differing)
        measures = f" ({before['measure']}, now {new.basis['measure']})"
        words = f"cannot be compared with the champion: {which}"
        return Verdict(words + measures * ("measure" in differing))
    p = _chance(project, champion, new)
    measure = new.basis["measure"].partition(",")[0]
    numbers = f"{measure} {new.value:.4g} against {champion.value:.4g} of the champion"
    if p is None:
        return Verdict(f"{numbers}: no spread is known or they are equal, so no claim")
    level = comparison.ALPHA / ((looks + 1) * (looks + 2))
    beyond = (new.value > champion.value) == (new.better == "higher") and p <= level
    outcome = f"{'' if beyond else 'not '}better beyond chance"
    limit = f"p {p:.2g}, limit {level:.2g} at comparison {looks + 1}"
    return Verdict(f"{outcome}: {numbers} ({limit})", champion=beyond, counted=True)


def _chance(project: Project, champion: ModelScore, new: ModelScore) -> float | None:
    """Return p of the difference of two models' scores; None: no claim.

    Paired, as `compare_scores` has it, where both runs' scores are there; else by means
    and errors: Welch's, of a release the normal law for each classifier tried.
    """
    runs = [load_record(project, score.run) for score in (champion, new)]
    first, second = runs if new.n else (None, None)
    if first and second and comparison.share_replicates(first, second):
        with suppress(UserError):  # gone (gc)
            before, after = _main_scores(project, first), _main_scores(project, second)
            if before and after:
                (metric, a), (_, b) = before, after
                where, metrics = {"metric": metric.name}, {metric.name: metric}
                return comparison.test_change(where, metrics, a, b, "paired").p
    if not champion.se or not new.se:
        return None
    u, v = champion.se**2, new.se**2
    z = -abs(new.value - champion.value) / math.sqrt(u + v)
    if not new.n:
        return min(1.0, 2 * float(ndtr(z)) * new.tries)
    df = (u + v) ** 2 / (u**2 / (champion.n - 1) + v**2 / (new.n - 1))
    return 2 * float(stdtr(df, z))
