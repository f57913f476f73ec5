"""Champion of a pipeline: the model that another one replaces only beyond chance.

A pipeline runs again and again, and each new model is compared with the champion. Of
many comparisons some find a difference by chance, so all of them share one error: the
k-th is called at alpha / (k (k + 1)), whose sum is alpha. So while no model is better
than the first, the chance that the champion ever moves is at most alpha, however many
runs there are and whatever they have in common (Bonferroni's inequality).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

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
class Standing:
    """The number that a run's model is judged by, and what it is a number of.

    Of a study it is the main score, of ``n`` replicates; of a release (``n`` 0) what
    noised messages tell, the best of ``tries`` classifiers. Numbers of another
    ``basis`` are not comparable.
    """

    run: str
    value: float
    se: float | None
    n: int
    tries: int
    better: str
    basis: dict[str, str]

    @classmethod
    def of(cls, project: Project, record: RunRecord, cell: Cell) -> Self | None:
        """Return the standing of a run's model; None: no number tells of it.

        UserError: what it was computed from is gone.
        """
        source = {k: v for k, v in record.config["source"].items() if k != "path"}
        basis = {"source": json_digest(source)[:16]}
        part = settings.part_of_cell(record.config, cell)
        axis = find_system(part.settings.protocol).x.name
        place = Cell.from_mapping({axis: cell[axis]}).words
        if record.config.get("mode") == "production":
            told = results.production_outcomes(project, record).get(cell, {})
            for name in (name for name in told if f"{name}_se" in told):
                measure = {"measure": f"{name} of a release, {place}"}
                tries = int(told.get("classifiers", 1))
                number = told[name], told[f"{name}_se"]
                return cls(record.id, *number, 0, tries, "higher", basis | measure)
            return None
        found = _main_scores(project, record)
        if found is None:
            return None
        metric, scores = found
        basis |= {"data": json_digest([*_raw_files(project, record)])[:16]}
        basis |= {"measure": f"{metric.name}, {place}"}
        n, mean = len(scores), float(scores.mean())
        se = float(scores.std(ddof=1)) / math.sqrt(n) if n > 1 else None
        return cls(record.id, mean, se, n, 1, metric.better, basis)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the standing that `to_json` wrote."""
        return cls(**json.loads(text))

    def to_json(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        measure = self.basis["measure"].partition(",")[0]
        return f"{measure} {self.value:.4g}"


def _main_scores(
    project: Project, record: RunRecord
) -> tuple[Metric, pd.Series[float]] | None:
    """Return a run's main score in each replicate, with its metric."""
    rows = results.declared_rows(record, results.mean_scores(project, record))
    place = results.main_score_index(record, rows)
    if place is None:
        return None
    row = rows[place]
    named = {**row, **row.get("setting", {})}
    metrics = {m.name: m for m in comparison.declared_metrics(record)}
    for where, scores in comparison.scores_by_replicate(
        project, record, metrics
    ).items():
        if all((named.get(name) or None) == (value or None) for name, value in where):
            return metrics[row["metric"]], scores
    return None


def _raw_files(project: Project, record: RunRecord) -> Iterator[Any]:
    """Yield the digests of the files that a run's first stages read."""
    for stage, key in dict.fromkeys((s["stage"], s["key"]) for s in record.steps):
        components = artifact(project, stage, key).manifest["components"]
        if not components["inputs"]:
            yield components.get("raw")


@dataclass(frozen=True)
class Verdict:
    """Why a new model takes the champion's place or does not, in words.

    ``counted`` says that a comparison was made, which has its share of the error.
    """

    words: str
    champion: bool = False
    counted: bool = False


def judge(project: Project, champion: Standing, new: Standing, looks: int) -> Verdict:
    """Return the verdict on a new model after ``looks`` comparisons before it."""
    if champion.basis != new.basis:
        pairs = ((k, champion.basis.get(k), v) for k, v in new.basis.items())
        differing = ", ".join(
            f"{after} instead of {before}" if name == "measure" else f"another {name}"
            for name, before, after in pairs
            if before != after
        )
        return Verdict(f"cannot be compared with the champion: {differing}")
    p = _chance(project, champion, new)
    numbers = f"{new} against {champion.value:.4g} of the champion"
    if p is None:
        return Verdict(f"{numbers}: no spread is known or they are equal, so no claim")
    level = comparison.ALPHA / ((looks + 1) * (looks + 2))
    beyond = (new.value > champion.value) == (new.better == "higher") and p <= level
    outcome = "better beyond chance" if beyond else "not better beyond chance"
    limit = f"p {p:.2g}, limit {level:.2g} at comparison {looks + 1}"
    return Verdict(f"{outcome}: {numbers} ({limit})", champion=beyond, counted=True)


def _chance(project: Project, champion: Standing, new: Standing) -> float | None:
    """Return p of the difference of two standings; None: no claim.

    By the test of `compare_scores` where both runs' scores are there; else by means and
    standard errors: Welch's, of a release the normal law for each classifier tried.
    """
    first, second = (load_record(project, s.run) for s in (champion, new))
    if new.n and first and second:
        with suppress(UserError):  # gone (gc)
            before, after = _main_scores(project, first), _main_scores(project, second)
            if before and after:
                metric, a = before
                shared = comparison.share_replicates(first, second)
                how: comparison.Test = "paired" if shared else "welch"
                where = {"metric": metric.name}
                metrics = {metric.name: metric}
                return comparison.test_change(where, metrics, a, after[1], how).p
    if not champion.se or not new.se:
        return None
    u, v = champion.se**2, new.se**2
    z = -abs(new.value - champion.value) / math.sqrt(u + v)
    if not new.n:
        return min(1.0, 2 * float(ndtr(z)) * new.tries)
    df = (u + v) ** 2 / (u**2 / (champion.n - 1) + v**2 / (new.n - 1))
    return 2 * float(stdtr(df, z))
