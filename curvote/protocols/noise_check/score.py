"""Report stage of `drift`: agreement of labels and distance of the laws.

Both are estimated from the reports that the mechanism really made, so that the
formulas of `curvote.theory` can be held against them.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from curvote.chain.stage import Columns, Rows, StageContext

WIDTH = 0.1


def one(context: StageContext) -> Rows:
    """Return the table ``scores``: ``agreement`` and ``total_variation``.

    ``agreement`` is g(z0) of MRMA, proposition 2, at z0 = ``drift.at``, from the
    reports whose first number lies within 0.1 of z0, or beyond the end of [-1, 1] at
    or beyond which z0 lies (the Laplace law says the same there). The total variation
    is that of record and report: since the noised density lies nowhere in the cube
    above the records', it is the chance that a report lies outside the cube.
    """
    reports = context.rows("privatize", "reports")
    slope = context.inputs["ingest"].metadata["slope"]
    scores = {"total_variation": outside_share(reports)}
    scores |= label_agreement(reports, slope, context.params["drift.at"])
    return {
        "scores": {
            "method": np.full(len(scores), "report", dtype=object),
            "metric": np.array(list(scores), dtype=object),
            "value": np.array(list(scores.values())),
        }
    }


def outside_share(reports: Columns) -> float:
    """Return the share of reports that lie outside the cube, where records are."""
    inside = (np.abs(reports["z"]) <= 1).all(axis=1)
    return 1 - float(inside.mean())


def label_agreement(reports: Columns, slope: float, at: float) -> dict[str, float]:
    """Return the chance that clean and noised label agree at z0, if any is near."""
    first = reports["z"][:, 0]
    is_near = np.abs(first - at) <= WIDTH if abs(at) < 1 else first * np.sign(at) >= 1
    if not is_near.any():
        return {}
    noised = float((reports["label"][is_near] > 0).mean())
    clean = float(expit(slope * at))
    return {"agreement": 1 - (clean * (1 - noised) + (1 - clean) * noised)}
