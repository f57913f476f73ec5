"""What a completed run says: scores, and the final classifier of each cell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from curvote.classifier import Linear
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.protocols.classifiers import line_of
from curvote.protocols.mrma.arms import WEAK_ARMS
from curvote.representation.encoding import Encoding
from curvote.run.config.schema import Representation
from curvote.run.config.settings import labels_of, of_config
from curvote.run.history import RunRecord
from curvote.run.plan.step import Cell
from curvote.run.project import Project
from curvote.run.store.artifacts import Artifact, sound
from curvote.server.averaging import average

if TYPE_CHECKING:
    from curvote.curve_classifier import CurveClassifier

ORDER = (
    *("weak", "mr", "ma", "mrma", "federated", "online", "frozen", "best_single"),
    *("mean", "joint", "two", "votes"),
    *("voting", "averaging", "all_data", "clean", "majority", "histogram"),
)
SCORE = ("protocol", "setting", "epsilon", "arrival", "learner", "method", "group")


def find(project: Project, record: RunRecord, stage: str, cell: Cell) -> Artifact:
    """Return the artifact of a stage that serves ``cell`` in a run."""
    keys = {Cell(**c): key for c, key in record.keys(stage)}
    return sound(project, stage, next(keys[c] for c in cell.wider() if c in keys))


def cells(record: RunRecord) -> list[Cell]:
    """Return the cells of a run that end in a classifier of noised messages."""
    return [Cell(**cell) for cell, _ in record.keys("aggregate")]


def first_cell(record: RunRecord) -> Cell:
    """Return the cell of the first setting that all its cells share."""
    (cell, _), *_ = record.keys("project")
    return Cell(**cell)


def scores(project: Project, record: RunRecord) -> pd.DataFrame:
    """Return one row for each replicate and score: the columns of ``SCORE``."""
    parts = [
        _labelled(sound(project, "report", key).table("scores").to_pandas(), cell)
        for cell, key in record.keys("report")
    ]
    return pd.DataFrame(pd.concat(parts))


def _labelled(part: pd.DataFrame, cell: dict[str, Any]) -> pd.DataFrame:
    here = {"setting": cell.get("setting"), "arrival": cell.get("arrival")}
    return part.assign(**here).astype(dict.fromkeys(SCORE, object))


def summary(project: Project, record: RunRecord) -> list[dict[str, Any]]:
    """Return the rows of ``scores --json``: means and standard errors over replicates.

    misclassification, se and none_passed (a share of replicates) lie in [0, 1]; se is
    NaN-free: null with one replicate. Production has no rows: its truth is not known.
    """
    if not record.keys("report"):
        return []
    table = scores(project, record)
    labels = labels_of(record.config)
    rows = [
        _row(record, dict(zip(SCORE, map(plain, names), strict=True)), group, labels)
        for names, group in table.groupby(list(SCORE), dropna=False, sort=False)
    ]
    learners = [learner["label"] for learner in record.config["learners"]]
    return sorted(rows, key=lambda row: _place(row, list(labels.values()), learners))


def plain(value: Any) -> Any:
    """Return a cell of a table of scores; what pandas calls missing is None."""
    return None if pd.isna(value) else value


def _row(
    record: RunRecord,
    names: dict[str, Any],
    group: pd.DataFrame,
    labels: dict[str | None, dict[str, str]],
) -> dict[str, Any]:
    """Return the mean over replicates; the servers of one replicate count once."""
    each = group.groupby("replicate")[["misclassification", "none_passed"]].mean()
    n = len(each)
    se = each["misclassification"].std(ddof=1) / np.sqrt(n) if n > 1 else None
    row = {
        "pipeline": record.pipeline,
        "protocol": names["protocol"],
        "epsilon": names["epsilon"],
        "learner": names["learner"],
        "method": names["method"],
        "misclassification": float(each["misclassification"].mean()),
        "se": None if se is None else float(se),
        "replicates": n,
        "none_passed": float(each["none_passed"].mean()),
    }
    special = {"arrival": names["arrival"], "group": names["group"]}
    row |= {name: value for name, value in special.items() if value is not None}
    return row | ({"setting": labels[names["setting"]]} if names["setting"] else {})


def _place(
    row: dict[str, Any], settings: list[dict[str, str]], learners: list[str]
) -> tuple[Any, ...]:
    learner, setting = row["learner"], row.get("setting")
    return (
        settings.index(setting) if setting else 0,
        np.inf if row["epsilon"] is None else row["epsilon"],
        row.get("arrival", 0),
        learners.index(learner) if learner in learners else len(learners),
        ORDER.index(row["method"]) if row["method"] in ORDER else len(ORDER),
        row.get("group", ""),
    )


def outcomes(project: Project, record: RunRecord) -> dict[Cell, dict[str, float]]:
    """Return what production knows of each cell: counts, and estimated utilities.

    ``utility`` is the estimate of the best classifier after reversal; choosing it makes
    it look better than it is, so ``utility_se`` is a lower bound on its error.
    """
    return {cell: _outcome(project, record, cell) for cell in cells(record)}


def _outcome(project: Project, record: RunRecord, cell: Cell) -> dict[str, float]:
    source = find(project, record, "aggregate", cell)
    if source.holds("classifier"):
        return {"reports": int(source.columns("classifier", 0)["n"][0])}
    votes = find(project, record, "evaluate", cell).columns("votes", 0)
    made = source.columns("ensemble", 0)
    utility = np.where(made["reversed"], 1 - made["utility"], made["utility"])
    best = int(np.argmax(utility))
    keep = BinaryRR(epsilon=cell.epsilon or 0.0).keep
    n = int(votes["n"][best])
    share = (votes["positive"][best] + 2) / (n + 4)  # never 0: Agresti & Coull (1998)
    return {
        "reports": _reports(project, record, cell),
        "votes": int(votes["n"].sum()),
        "classifiers": len(utility),
        "passed": int((utility > source.facts["cutoff"]).sum()),
        "utility": float(utility[best]),
        "utility_se": float(np.sqrt(share * (1 - share) / n) / (2 * keep - 1)),
    }


def _reports(project: Project, record: RunRecord, cell: Cell) -> int:
    """Return how many reports there were before the votes; some protocols ask none."""
    asked = any(step["stage"] == "privatize" for step in record.steps)
    return find(project, record, "privatize", cell).rows if asked else 0


def encoding_of(
    project: Project, record: RunRecord, replicate: int, cell: Cell
) -> Encoding:
    """Return a cell's encoding in one replicate, volunteers' constants filled in."""
    encoded = find(project, record, "project", cell)
    rows = encoded.columns("constants", replicate)
    constants = dict(zip(rows["name"], rows["value"], strict=True))
    described = Encoding.from_json(encoded.facts["encoding"])
    stated = of_config(record.config, cell.setting)["project"]
    judge = Representation.model_validate(stated).judge
    return replace(described, constants=constants, feature_map=judge)


def _line(
    project: Project, record: RunRecord, cell: Cell
) -> tuple[NDArray[np.float64], float]:
    """Return (coef, intercept): the one classifier, or the ensemble's average."""
    made = find(project, record, "aggregate", cell)
    if made.holds("classifier"):
        return line_of(made, 0)
    weak = find(project, record, "train", cell).columns("weak", 0)
    ensemble = made.columns("ensemble", 0)
    own = weak["arm"] == WEAK_ARMS.index("weak")
    turned = np.where(ensemble["reversed"], -1.0, 1.0) * ensemble["weight"]
    return average(weak["coef"][own], weak["intercept"][own], turned)


def final_model(project: Project, record: RunRecord, cell: Cell) -> CurveClassifier:
    """Return the final classifier of a cell's first replicate, ready for raw curves."""
    from curvote.curve_classifier import CurveClassifier  # scikit-learn takes a second

    facts = find(project, record, "project", cell).facts
    coef, intercept = _line(project, record, cell)
    encoding = encoding_of(project, record, 0, cell)
    line = Linear(coef, intercept, encoding.feature_map)
    grid = np.asarray(facts["grid"])
    return CurveClassifier.of(encoding, grid, line, facts["classes"])
