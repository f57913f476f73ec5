"""Which form a task asks for, and which weights: from public facts alone.

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

from curvote.mechanisms.gaussian_noise import GaussianNoise
from curvote.transfer.setup import Setup
from curvote.transfer.task import Level

# The most features that cells are taken for, and their pitch: quarters of the range
# cost more noise than they show.
FEW: Final = 3
PITCH: Final = 0.5
# A second moment is asked for where p v is below that.
SECOND: Final = 2e-3
# Steps to 1, so fine that the grid adds nothing to the noise.
_ONE: Final = 1 << 20
_CELLS: Final = 8192
_GRIDS: Final = 400


class Choice(NamedTuple):
    """What is asked: ``release`` and ``params`` of the task, ``weights`` of `combine`.

    ``reason`` says why, in a sentence with its numbers.
    """

    release: str
    params: dict[str, Any]
    weights: str
    reason: str


def choose(setup: Setup) -> Choice:
    """Return the form for what is public; sizes that nobody knows are a UserError."""
    sizes, d = setup.known_sizes(), setup.d
    v = pooled_variance(sizes, setup.levels)
    weights = "aligned" if len(sizes) > 1 else "adapt_tar"
    if d <= FEW:
        params = _cells(d, setup.classes)
        reason = f"{d} features: cells of {PITCH} see any boundary (v = {v:.2g})"
        return Choice("cells", params, weights, reason)
    energy = (d + 1) * v
    arm = "joint" if energy < SECOND else "mean"
    sign = "below" if arm == "joint" else "above"
    reason = f"{d} features: a line; p v = {energy:.2g} is {sign} {SECOND:g}"
    return Choice("moments", {"arm": arm}, weights, reason)


def pooled_variance(sizes: Mapping[str, int], levels: Mapping[str, Level]) -> float:
    """Return v; records of a server that spends nothing have no noise."""
    precisions = [1 / _variance(n, levels[name]) for name, n in sizes.items()]
    return 1 / math.fsum(precisions)


def _variance(n: int, level: Level) -> float:
    sampling = 1 / (4 * n)
    if not level.noised:
        return sampling
    budget = level.budget(n)
    noise = GaussianNoise(_ONE * math.sqrt(2), budget.epsilon, budget.delta)
    return sampling + (noise.sigma / _ONE / n) ** 2


def _cells(d: int, classes: int) -> dict[str, Any]:
    """Return grids on all features that fit the cells that a release may have."""
    each = (math.ceil(1 / PITCH) + 1) ** d
    grids = min(_GRIDS, max(1, _CELLS // (classes * each)))
    return {"order": d, "pitch": PITCH, "grids": grids, "cells": _CELLS}
