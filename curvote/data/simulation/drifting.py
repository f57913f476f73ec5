"""Simulation of curves that arrive in groups, with labels whose law begins to change.

The curves are those of `curvote.data.simulation.simulated` (MRMA section 6) in every
arrival; the slope function of the logit turns at one of them. It is what MRMA section
3.5, "Online data", has in mind: performance deteriorates on new data.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Annotated, Any, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field

from curvote.base.validate import FloatArray
from curvote.chain.settings import Count, Strict, WholeNumber
from curvote.data import columns
from curvote.data.columns import ClientColumns, Paths, Points
from curvote.data.simulation import simulated

SIMULATED = True

_ZETA = np.array([1.0, -0.5])  # standard deviations of a curve along phi_1 and phi_2


class Parameters(Strict):
    """Settings of ``source:``: groups, and how far the law turns.

    Clients come in ``periods`` arrivals of equal shares. From arrival ``since`` on
    (numbered from 0; ``periods``: never) the slope is turned by ``turn`` degrees.
    """

    name: Literal["drifting"] = "drifting"
    points: Points = simulated.POINTS
    periods: WholeNumber = 6
    turn: Annotated[float, Field(ge=-180, le=180)] = 90.0
    since: Count = 3


files, size, width = columns.no_files, columns.no_size, columns.grid_points


def facts(parameters: Parameters, _paths: Paths | None = None) -> dict[str, Any]:
    """Return the public metadata; ``periods`` says groups are arrivals."""
    last, since = parameters.periods - 1, parameters.since
    when = f"by {parameters.turn:g} degrees at {since}" if since <= last else "never"
    return simulated.FACTS | {
        "title": "Simulated curves whose slope turns",
        "grid": np.linspace(0.0, 1.0, parameters.points).tolist(),
        "notes": [f"Clients come in arrivals 0 to {last}; the slope turns {when}."],
        "periods": parameters.periods,
    }


def clients(parameters: Parameters, n: int, generator: Generator) -> ClientColumns:
    """Return ``n`` clients: client_id, label, group (n,) and curve (n, T).

    Client i belongs to arrival ``group`` = i mod periods. Curves and the uniforms
    behind the labels do not depend on ``turn``, ``since`` or ``periods``.
    """
    group = np.arange(n) % parameters.periods
    same = deepcopy(generator)
    curve, before = simulated.generate(generator, n, parameters.points)
    slope = rotated_slope(parameters.turn)
    _, after = simulated.generate(same, n, parameters.points, slope)
    label = np.where(group < parameters.since, before, after)
    return columns.client_columns(curve, label, group=group)


def rotated_slope(degrees: float) -> FloatArray:
    """Return the slope's coefficients (50,), rotated by ``degrees``.

    The logit is alpha0 + sum_j xi_j s_j with xi_j of variance 1 and s_j = zeta_j
    beta_j. (s_1, s_2) turns in its plane and the others stay, so the standard
    deviation of the logit stays too: the labels are about as hard to tell as before.
    """
    angle = np.deg2rad(degrees)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    head, tail = np.split(simulated.BETA, [2])
    return np.concatenate([turn @ (_ZETA * head) / _ZETA, tail])
