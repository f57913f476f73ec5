"""Stage report: how often noised and clean label agree, and noised z is told apart.

Both are error rates, estimated from the reports that the mechanism really made, so
that the formulas of `curvote.theory` can be held against them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from curvote.protocols.scores import score_rows
from curvote.protocols.stage import Columns, Facts, Inputs, Params, Tables

WIDTH = 0.1


def facts(inputs: Inputs, params: Params) -> Facts:
    """Return the name under which the cell's rows stand."""
    return {"protocol": params["label"], "learner": None}


def block(
    replicates: Sequence[int], inputs: Inputs, params: Params, facts: Facts
) -> Tables:
    """Return the table ``scores``: ``agreement`` and ``told_apart``.

    ``agreement`` is 1 - g(z0) of MRMA, proposition 2, at z0 = ``drift.at``, from the
    reports whose first number lies within 0.1 of z0, or beyond the end of [-1, 1] at
    or beyond which z0 lies (the Laplace law says the same there). ``told_apart`` is
    the least error with which a report is told from a record, (1 - TV)/2: since the
    noised density lies nowhere in the cube above the records', the best test asks
    whether z lies in the cube.
    """
    slope = inputs["ingest"].facts["slope"]
    found = []
    for replicate in replicates:
        reports = inputs["privatize"].columns("reports", replicate)
        rates = {"told_apart": told_apart(reports), **agreement(reports, slope, params)}
        found.append(score_rows(rates, {}, params, None))
    return {"scores": found}


def told_apart(reports: Columns) -> float:
    """Return half the share of reports that lie in the cube, where records do."""
    inside = (np.abs(reports["z"]) <= 1).all(axis=1)
    return float(inside.mean()) / 2


def agreement(reports: Columns, slope: float, params: Params) -> dict[str, float]:
    """Return the chance that clean and noised label differ at z0, if any is near."""
    at, first = params["drift.at"], reports["z"][:, 0]
    near = np.abs(first - at) <= WIDTH if abs(at) < 1 else first * np.sign(at) >= 1
    if not near.any():
        return {}
    noised = float((reports["label"][near] > 0).mean())
    clean = float(expit(slope * at))
    return {"agreement": clean * (1 - noised) + (1 - clean) * noised}
