"""Automatic choice of form and weights from public facts alone.

What is known before anything is released: how many features and classes there are, how
many records each server has and what it spends. From these follows v, the variance of a
number of the pooled class means,

    1/v = sum_j 1/(1/(4 n_j) + sigma_j^2/n_j^2),

sigma_j the noise of sums that one record moves by sqrt 2. Measured with the simulation
of paper 002 (two features), the four hospitals (seven) and phonemes (eight and twelve):
cells see any boundary and win where they are few, a line wins beyond, and a second
moment pays once p v is small, p the number of coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from curvote.mechanisms.gaussian import GaussianNoise
from curvote.systems.transfer.method.task import Level, PublicSetup

# The most features that cells are taken for, and their pitch: quarters of the range
# cost more noise than they show.
MOST_CELL_FEATURES: Final = 3
PITCH: Final = 0.5
# A second moment is asked for where p v is below that.
SECOND_MOMENT_LIMIT: Final = 2e-3
# Steps to 1, so fine that the grid adds nothing to the noise.
_UNIT: Final = 1 << 20
_CELLS: Final = 8192
_GRIDS: Final = 400


class Choice(NamedTuple):
    """Chosen ``release`` and ``params`` of a task, and ``weights`` of `combine`.

    ``reason`` says why, in a sentence with its numbers.
    """

    release: str
    params: dict[str, Any]
    weights: str
    reason: str


def choose_form(setup: PublicSetup) -> Choice:
    """Return the form and weights for public facts; unknown sizes are a UserError."""
    sizes, d = setup.require_sizes(), setup.d
    v = pooled_variance(sizes, setup.levels)
    weights = "aligned" if len(sizes) > 1 else "adapt_tar"
    if d <= MOST_CELL_FEATURES:
        cells_per_grid = (math.ceil(1 / PITCH) + 1) ** d
        grids = min(_GRIDS, max(1, _CELLS // (setup.classes * cells_per_grid)))
        params = {"order": d, "pitch": PITCH, "grids": grids, "cells": _CELLS}
        reason = f"{d} features: cells of {PITCH} see any boundary (v = {v:.2g})"
        return Choice("cells", params, weights, reason)
    energy = (d + 1) * v
    arm = "joint" if energy < SECOND_MOMENT_LIMIT else "mean"
    sign = "below" if arm == "joint" else "above"
    reason = (
        f"{d} features: a line; p v = {energy:.2g} is {sign} {SECOND_MOMENT_LIMIT:g}"
    )
    return Choice("moments", {"arm": arm}, weights, reason)


def pooled_variance(sizes: Mapping[str, int], levels: Mapping[str, Level]) -> float:
    """Return v, the variance of a number of the pooled class means."""
    precisions = [1 / _mean_variance(n, levels[name]) for name, n in sizes.items()]
    return 1 / math.fsum(precisions)


def _mean_variance(n: int, level: Level) -> float:
    """Return the variance of a class mean of one server."""
    sampling = 1 / (4 * n)
    if not level.noised:
        return sampling
    budget = level.budget(n)
    noise = GaussianNoise(_UNIT * math.sqrt(2), budget.epsilon, budget.delta)
    return sampling + (noise.sigma / _UNIT / n) ** 2
