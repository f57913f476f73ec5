"""Figures 6, 7, 9, 11 to 14: agreement of two models on tables, against epsilon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from matplotlib.figure import Figure

from curvote.base.validate import FloatArray
from curvote.papers.evidence import Evidence
from curvote.papers.qcu.laws import agreement, our_channel, printed_agreement
from curvote.papers.qcu.laws import paper_law as printed_law
from curvote.papers.qcu.panels import curves_by_records
from curvote.papers.qcu.studies import (
    PrintedCurve,
    PrintedValue,
    RobustModel,
    agreement_row,
    analyze_setting,
    evidence_project,
    is_worst_case,
    printed_values,
    record_group,
    summarize_shares,
)
from curvote.papers.rows import Row, completed, percent, select
from curvote.systems.utility.method.profile import certified_bound

HALF: Final = {"qcu-figure-6": 0.5}  # what the exponential spends there
# The paper states .1 for both features; the Gaussian has its own.
INDICATOR: Final = {"qcu-figure-7": 0.1}
# Where the printed Gaussian leaves redrawn records out instead of counting them: found
# by trying both, the paper is silent.
LEFT_OUT: Final = {
    "qcu-figure-6": ("stroke-logistic",),
    "qcu-figure-9": ("stroke-logistic", "stroke-forest"),
    "qcu-figure-11": ("stroke-logistic",),
    "qcu-figure-12": ("stroke-forest",),
}


@dataclass(frozen=True)
class Shares:
    """Shares of single records, (n,): as published, by our mechanism, and its bound."""

    paper: FloatArray
    ours: FloatArray
    bound: FloatArray


@completed
def rows(name: str, evidence: Evidence) -> Iterator[Row]:
    """Yield the agreement by ``learner`` (model) and ``setting`` (the records).

    ``epsilon`` is that of each feature. z is missing for a worst record and for the
    Gaussian of the logistic models.
    """
    project = evidence_project(name, evidence)
    shares_of: dict[PrintedCurve, Shares] = {}
    for curve, value in printed_values(name.removeprefix("qcu-figure-")).items():
        # The average and the worst are of the same records.
        same = curve._replace(records=record_group(curve.records))
        if same not in shares_of:
            robust_model = analyze_setting(project, curve.model, same.records)
            shares_of[same] = cell_shares(name, curve, robust_model)
        yield cell_row(curve, value, shares_of[same])
        if name in INDICATOR and curve.mechanism != "gaussian":
            delta, share = INDICATOR[name], float(shares_of[same].paper.mean())
            behind = percent(delta + (1 - delta) * share)
            yield curve.columns | {"quantity": "indicator", "curvote": behind}


def cell_shares(name: str, curve: PrintedCurve, robust_model: RobustModel) -> Shares:
    """Return the shares of all records of a printed cell of figure ``name``."""
    law = printed_law(curve.mechanism, curve.epsilon, spent=HALF.get(name, 1.0))
    channel = our_channel(curve.mechanism, curve.epsilon)
    redraws = curve.mechanism != "gaussian" or curve.model not in LEFT_OUT.get(name, ())
    surface, values = robust_model.surface, robust_model.values
    return Shares(
        printed_agreement(surface, values, law, redraws=redraws),
        agreement(surface, channel),
        certified_bound(channel, values, robust_model.box),
    )


def cell_row(curve: PrintedCurve, value: PrintedValue, cell_values: Shares) -> Row:
    """Return the row of a printed cell."""
    return agreement_row(curve, value, cell_values.paper, cell_values.ours) | {
        "bound": percent(summarize_shares(curve.records, cell_values.bound)),
        "z": _z_score(curve, value, cell_values.paper),
    }


def _z_score(
    curve: PrintedCurve, value: PrintedValue, share: FloatArray
) -> float | None:
    """Return z by the standard error of all printed draws, of each record its own."""
    comparable = curve.mechanism != "gaussian" or not curve.model.endswith("logistic")
    error = float(np.sqrt(np.sum(share * (1 - share)) / value.draws)) / len(share)
    if is_worst_case(curve.records) or not comparable or error == 0:
        return None
    return (float(share.mean()) - value.empirical) / error


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw a panel for each model and setting: agreement against epsilon."""
    return curves_by_records(select(results, quantity="agreement"))


def terminal_rows(results: Sequence[Row]) -> Sequence[Row]:
    """Return the rows of printed values."""
    return select(results, quantity="agreement")


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield the distance of printed draws, and how often bounds fail."""
    agreements = select(results, quantity="agreement")
    scored = [result for result in agreements if result["z"] is not None]
    near = sum(abs(result["z"]) <= 3 for result in scored)
    yield f"{near} of {len(scored)} cells within 3 standard errors of the printed draws"
    far = max(agreements, key=_printed_gap)
    names = ", ".join(far[name] for name in ("learner", "setting", "method"))
    place = f"{names}, epsilon {far['epsilon']:g}"
    yield f"largest difference: {_printed_gap(far):.2f} points ({place})"
    above = sum(result["claimed"] > result["curvote"] for result in agreements)
    yield (
        f"the printed lower bound is above the exact value in {above} of"
        f" {len(agreements)}"
    )
    over = sum(row["bound"] > row["corrected"] + 1e-9 for row in agreements)
    yield f"ours lies above it in {over}"
    # The distance of the printed Gaussian, for each panel.
    panels = dict.fromkeys((row["learner"], row["setting"]) for row in agreements)
    for model, setting in panels:
        selected = select(agreements, learner=model, setting=setting, method="gaussian")
        if selected:
            gap = max(map(_printed_gap, selected))
            yield f"gaussian, {model}, {setting}: within {gap:.2f} points"
    if len(agreements) < len(results):
        yield (
            "indicator: with probability .1 the record itself would be sent. The paper"
            " does so; curvote has no such mechanism"
        )


def _printed_gap(result: Row) -> float:
    return float(abs(result["curvote"] - result["published"]))
