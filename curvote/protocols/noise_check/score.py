"""Stage report: how often noised and clean label agree, and noised z is told apart.

Both are estimated from the reports that the mechanism really made, so that the
formulas of `curvote.theory` can be held against them.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from curvote.chain.stage import Columns, Here, Rows

WIDTH = 0.1


def one(here: Here) -> Rows:
    """Return the table ``scores``: ``agreement`` and ``total_variation``.

    ``agreement`` is g(z0) of MRMA, proposition 2, at z0 = ``drift.at``, from the
    reports whose first number lies within 0.1 of z0, or beyond the end of [-1, 1] at
    or beyond which z0 lies (the Laplace law says the same there). The total variation
    is that of record and report: since the noised density lies nowhere in the cube
    above the records', it is the chance that a report lies outside the cube.
    """
    reports = here.rows("privatize", "reports")
    slope = here.inputs["ingest"].facts["slope"]
    told = {"total_variation": outside(reports)}
    told |= agreement(reports, slope, here.params["drift.at"])
    return {
        "scores": {
            "method": np.full(len(told), "report", dtype=object),
            "metric": np.array(list(told), dtype=object),
            "value": np.array(list(told.values())),
        }
    }


def outside(reports: Columns) -> float:
    """Return the share of reports that lie outside the cube, where records are."""
    inside = (np.abs(reports["z"]) <= 1).all(axis=1)
    return 1 - float(inside.mean())


def agreement(reports: Columns, slope: float, at: float) -> dict[str, float]:
    """Return the chance that clean and noised label agree at z0, if any is near."""
    first = reports["z"][:, 0]
    near = np.abs(first - at) <= WIDTH if abs(at) < 1 else first * np.sign(at) >= 1
    if not near.any():
        return {}
    noised = float((reports["label"][near] > 0).mean())
    clean = float(expit(slope * at))
    return {"agreement": 1 - (clean * (1 - noised) + (1 - clean) * noised)}
