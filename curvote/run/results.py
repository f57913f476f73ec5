"""What a completed run says: scores, and the final classifier of each cell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from curvote.classifier import Linear
from curvote.mechanisms.binary_rr import BinaryRR
from curvote.protocols.mrma.arms import WEAK_ARMS
from curvote.representation.encoding import Encoding
from curvote.run.history import RunRecord
from curvote.run.project import Project
from curvote.run.step import Cell
from curvote.run.store import Artifact, sound
from curvote.server.averaging import average

if TYPE_CHECKING:
    from curvote.curve_classifier import CurveClassifier

ORDER = ("weak", "mr", "ma", "mrma", "voting", "averaging", "all_data", "majority")
SCORE = ("protocol", "epsilon", "learner", "method")


def find(project: Project, record: RunRecord, stage: str, cell: Cell) -> Artifact:
    """Return the artifact of a stage that serves ``cell`` in a run."""
    keys = {str(Cell(**c)): key for c, key in record.keys(stage)}
    wider = (cell, Cell(cell.protocol, cell.epsilon), Cell())
    key = next(keys[str(c)] for c in wider if str(c) in keys)
    return sound(project, stage, key)


def cells(record: RunRecord) -> list[Cell]:
    """Return the (protocol, epsilon, learner) cells of a run, in the plan's order."""
    return [Cell(**cell) for cell, _ in record.keys("aggregate")]


def scores(project: Project, record: RunRecord) -> pd.DataFrame:
    """Return one row for each replicate, (protocol, epsilon, learner) and method."""
    parts = [
        sound(project, "report", key).table("scores").to_pandas()
        for _, key in record.keys("report")
    ]
    plain = [part.astype(dict.fromkeys(SCORE, object)) for part in parts]
    return pd.DataFrame(pd.concat(plain))


def summary(project: Project, record: RunRecord) -> list[dict[str, Any]]:
    """Return the rows of ``scores --json``: means and standard errors over replicates.

    misclassification, se and none_passed (a share of replicates) lie in [0, 1]; se is
    NaN-free: null with one replicate. Production has no rows: its truth is not known.
    """
    if not record.keys("report"):
        return []
    table = scores(project, record)
    rows = [
        _row(record, dict(zip(SCORE, names, strict=True)), group)
        for names, group in table.groupby(list(SCORE), dropna=False, sort=False)
    ]
    learners = [learner["label"] for learner in record.config["learners"]]
    return sorted(rows, key=lambda row: _place(row, learners))


def _row(
    record: RunRecord, names: dict[str, Any], group: pd.DataFrame
) -> dict[str, Any]:
    n = len(group)
    se = group["misclassification"].std(ddof=1) / np.sqrt(n) if n > 1 else None
    learner = names["learner"] if isinstance(names["learner"], str) else None
    return {
        "pipeline": record.pipeline,
        "protocol": names["protocol"],
        "epsilon": float(names["epsilon"]),
        "learner": learner,
        "method": names["method"],
        "misclassification": float(group["misclassification"].mean()),
        "se": None if se is None else float(se),
        "replicates": n,
        "none_passed": float(group["none_passed"].mean()),
    }


def _place(row: dict[str, Any], learners: list[str]) -> tuple[float, int, int]:
    learner = row["learner"]
    rank = learners.index(learner) if learner in learners else len(learners)
    return row["epsilon"], rank, ORDER.index(row["method"])


def outcomes(project: Project, record: RunRecord) -> dict[Cell, dict[str, float]]:
    """Return what production knows of each cell: counts, and estimated utilities.

    ``utility`` is the estimate of the best classifier after reversal; choosing it makes
    it look better than it is, so ``utility_se`` is a lower bound on its error.
    """
    return {cell: _outcome(project, record, cell) for cell in cells(record)}


def _outcome(project: Project, record: RunRecord, cell: Cell) -> dict[str, float]:
    votes = find(project, record, "evaluate", cell).columns("votes", 0)
    made = find(project, record, "aggregate", cell).columns("ensemble", 0)
    utility = np.where(made["reversed"], 1 - made["utility"], made["utility"])
    best = int(np.argmax(utility))
    keep = BinaryRR(epsilon=cell.epsilon or 0.0).keep
    n = int(votes["n"][best])
    share = (votes["positive"][best] + 2) / (n + 4)  # never 0: Agresti & Coull (1998)
    return {
        "reports": find(project, record, "privatize", cell).rows,
        "votes": int(votes["n"].sum()),
        "classifiers": len(utility),
        "passed": int((utility > record.config["aggregate"]["cutoff"]).sum()),
        "utility": float(utility[best]),
        "utility_se": float(np.sqrt(share * (1 - share) / n) / (2 * keep - 1)),
    }


def encoding_of(project: Project, record: RunRecord, replicate: int) -> Encoding:
    """Return the encoding of one replicate, volunteers' constants filled in."""
    encoded = find(project, record, "project", Cell())
    rows = encoded.columns("constants", replicate)
    constants = dict(zip(rows["name"], rows["value"], strict=True))
    described = Encoding.from_json(encoded.facts["encoding"])
    judge = record.config["project"]["judge"]
    return replace(described, constants=constants, feature_map=judge)


def final_model(project: Project, record: RunRecord, cell: Cell) -> CurveClassifier:
    """Return the mrma classifier of a cell's first replicate, ready for raw curves."""
    from curvote.curve_classifier import CurveClassifier  # scikit-learn takes a second

    facts = find(project, record, "project", Cell()).facts
    weak = find(project, record, "train", cell).columns("weak", 0)
    ensemble = find(project, record, "aggregate", cell).columns("ensemble", 0)
    own = weak["arm"] == WEAK_ARMS.index("weak")
    turned = np.where(ensemble["reversed"], -1.0, 1.0) * ensemble["weight"]
    coef, intercept = average(weak["coef"][own], weak["intercept"][own], turned)
    encoding = encoding_of(project, record, 0)
    line = Linear(coef, intercept, encoding.feature_map)
    grid = np.asarray(facts["grid"])
    return CurveClassifier.of(encoding, grid, line, facts["classes"])
