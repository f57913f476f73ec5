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
from dataclasses import dataclass, field
from typing import Any

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


@dataclass(frozen=True)
class ModelScore:
    """The number that a run's model is judged by, and what it is a number of.

    Of a study it is the main score, of ``n`` replicates and the columns ``where``; of a
    release (``n`` 0) what noised messages tell, the best of ``tries`` classifiers.
    Numbers of another ``basis`` are not comparable.
    """

    run: str
    basis: dict[str, str]
    value: float
    se: float | None
    n: int
    better: str
    tries: int = 1
    where: dict[str, Any] = field(default_factory=dict)


def score_model(project: Project, record: RunRecord, cell: Cell) -> ModelScore | None:
    """Return the score of a cell's model; None: no number tells of it.

    UserError: what it was computed from is gone.
    """
    source = {k: v for k, v in record.config["source"].items() if k != "path"}
    basis = {"source": json_digest(source)[:16]}
    part = settings.part_of_cell(record.config, cell)
    system = find_system(part.settings.protocol)
    axis = system.x.name
    place = Cell.from_mapping({axis: cell[axis]}).words
    if record.config.get("mode") == "production":
        outcome = results.production_outcomes(project, record).get(cell, {})
        for name in (name for name in outcome if f"{name}_se" in outcome):
            basis["measure"] = f"{name} of a release, {place}"
            # An interval is about the classifier that was released, not the best one.
            best = "classifiers" if f"{name}_low" not in outcome else ""
            value, tries = outcome[name], int(outcome.get(best, 1))
            error = outcome[f"{name}_se"]
            return ModelScore(record.id, basis, value, error, 0, "higher", tries)
        return None
    rows = results.declared_rows(record, results.mean_scores(project, record))
    main = results.main_score_index(record, rows)
    if main is None:
        return None
    row = rows[main]
    places = dict.fromkeys((step["stage"], step["key"]) for step in record.steps)
    parts = [artifact(project, *place).manifest["components"] for place in places]
    basis["data"] = json_digest([p.get("raw") for p in parts if not p["inputs"]])[:16]
    basis["measure"] = f"{row['metric']}, {place}"
    better = {m.name: m.better for m in system.metrics}[row["metric"]]
    number, tries = (row["value"], row["se"], row.get("replicates", 1)), 1
    columns = {*results.ALWAYS_COLUMNS, "method", "metric", "group", *cell.to_json()}
    where = {name: row.get(name) for name in columns - {"setting"}}
    where |= row.get("setting", {})
    return ModelScore(record.id, basis, *number, better, tries, where)


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

    Paired, by `compare_scores`, where the runs share replicates and are still there;
    else Welch's, by means and errors, of a release the normal law for each try.
    """
    runs = [load_record(project, score.run) for score in (champion, new)]
    first, second = runs if new.where == champion.where else (None, None)
    if first and second and comparison.share_replicates(first, second):
        with suppress(UserError):  # gone (gc)
            for change in comparison.compare_scores(project, first, second):
                row = change.row()
                if all(row.get(name) == value for name, value in new.where.items()):
                    return change.p
    if not champion.se or not new.se:
        return None
    u, v = champion.se**2, new.se**2
    z = -abs(new.value - champion.value) / math.sqrt(u + v)
    if not new.n:
        return min(1.0, 2 * float(ndtr(z)) * new.tries)
    df = (u + v) ** 2 / (u**2 / (champion.n - 1) + v**2 / (new.n - 1))
    return 2 * float(stdtr(df, z))
