"""Simulation of curves of many servers (MRMA section 6.2): three groups, own slopes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np
from pydantic import model_validator

from curvote.base.validate import FloatArray
from curvote.chain.settings import Count, Strict
from curvote.data import columns
from curvote.data.columns import ClientColumns, Paths, Points
from curvote.data.simulation import simulated

SIMULATED = True
_RATE = 15.0
_NOTES = (
    "Every server of every replicate has a slope of its own.",
    "Slopes of groups 1 and 3 point in opposite directions.",
    "Group 2 has Gaussian-process slopes, from which next to nothing can be learnt.",
)


class Parameters(Strict):
    """Settings of ``source:``: the grid points, and servers of each group."""

    name: Literal["simulated_servers"] = "simulated_servers"
    points: Points = simulated.POINTS
    servers: tuple[Count, Count, Count] = (10, 5, 10)

    @model_validator(mode="after")
    def _check_servers(self) -> Parameters:
        if not sum(self.servers):
            raise ValueError("there must be at least one server.")
        return self


files, size, width = columns.no_files, columns.no_size, columns.grid_points


def servers(parameters: Parameters) -> dict[str, None]:
    """Return the servers "0" to "K - 1"; a pipeline says how many clients each has."""
    return dict.fromkeys(map(str, range(sum(parameters.servers))))


def group_of(parameters: Parameters, server: int) -> int:
    """Return the group, 1 to 3, of server 0 to K - 1."""
    return int(np.searchsorted(np.cumsum(parameters.servers), server, "right")) + 1


def facts(parameters: Parameters, _paths: Paths | None = None) -> dict[str, Any]:
    """Return the public metadata; ``groups`` has one for each server.

    The Bayes error depends on the slope that was drawn: none is stated.
    """
    plain = simulated.Parameters(points=parameters.points)
    every = servers(parameters)
    groups_metadata = {
        "title": "Simulated curves of many servers (MRMA section 6.2)",
        "bayes_error": None,
        "servers": every,
        "groups": [group_of(parameters, int(k)) for k in every],
        "notes": [*_NOTES],
    }
    return simulated.facts(plain) | groups_metadata


def clients(
    parameters: Parameters, n: int, generator: np.random.Generator, server: int
) -> ClientColumns:
    """Return ``n`` new clients of one ``server`` with a slope of its own.

    Columns as of data set ``simulated``: client_id, label, group (n,) and curve (n, T);
    their ``group`` is each client itself, not the group of servers.
    """
    beta = draw_slope(generator, group_of(parameters, server))
    curves, labels = simulated.generate(generator, n, parameters.points, beta)
    return columns.client_columns(curves, labels)


def draw_slope(generator: np.random.Generator, group: int) -> FloatArray:
    """Draw the slope's coefficients on phi_1..phi_50, (50,), for a server of ``group``.

    Groups 1 and 3: gamma_j (-1)^(j+1) j^-2 with gamma_j uniform on [-8, -2] or [2, 8].
    Group 2: those of a Gaussian process with kernel exp(-15 |s - t|). A curve lies in
    the span of phi, so they alone decide the integral of X beta, for any grid; a
    trapezoid rule on the grid would add an error of its own.
    """
    if group == 2:
        normal = generator.standard_normal(len(simulated.DECAY))
        return np.asarray(_covariance_factor() @ normal)
    direction = -1.0 if group == 1 else 1.0
    gamma = generator.uniform(2.0, 8.0, len(simulated.DECAY))
    return np.asarray(direction * gamma * simulated.DECAY)


@lru_cache
def _covariance_factor() -> FloatArray:
    return np.asarray(np.linalg.cholesky(process_covariance()))


def process_covariance() -> FloatArray:
    """Return the covariance (50, 50) of a group 2 slope's coefficients, exactly.

    The image u of cos(w_n t), w_n = (n-1) pi, under the kernel exp(-a |s-t|) solves
    u'' = a^2 u - 2a cos(w_n s), u'(0) = a u(0), u'(1) = -a u(1). With l_n = a/(a^2 +
    w_n^2), p_n = (-1)^(n-1) and the norms s_1 = 1, s_n = sqrt(2) this gives C_mn =
    2 l_m [m = n] - s_m l_m s_n l_n (1 + p_m p_n) (1 - p_m e^-a).
    """
    w = np.pi * np.arange(len(simulated.DECAY))
    parity = (-1.0) ** np.arange(len(w))
    gain = _RATE / (_RATE**2 + w**2)
    edge = np.where(w == 0, 1.0, np.sqrt(2.0)) * gain
    ends = (1 + np.outer(parity, parity)) * (1 - parity * np.exp(-_RATE))
    return np.asarray(np.diag(2 * gain) - np.outer(edge, edge) * ends)
