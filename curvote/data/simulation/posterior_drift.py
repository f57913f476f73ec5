"""Simulation of a target server and sources with another label law (DTK section 6.1).

Records are even on [0, 1]^2. The labels of all servers have the same boundary; those of
the sources are clearer than the target's (gamma < 1) or less so.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from curvote.base.validate import FloatArray
from curvote.chain.settings import Count, Strict, WholeNumber
from curvote.data import columns
from curvote.data.columns import ClientColumns, Feature, Paths

SIMULATED = True
TARGET = "target"
BAYES_ERROR = 9 / 200 + math.log(4) / 40  # E min(eta_T, 1 - eta_T), integrated by hand
_FEATURES = [
    Feature(name, "number", 0, 1, "drawn from [0, 1]") for name in ("x1", "x2")
]
_NOTES = (
    "Sources have the target's records and its decision boundary, not its labels' law.",
    "The least possible error is that on the target's records.",
)


class Parameters(Strict):
    """Settings of ``source:``: how many servers, sizes, and label drift.

    Each server has ``n`` records, or they share ``total`` as evenly as possible; the
    target has ``test`` more. ``gamma`` is the relative signal exponent of the ``m``
    sources.
    """

    name: Literal["posterior_drift"] = "posterior_drift"
    n: WholeNumber | None = None
    total: WholeNumber | None = None
    m: Count = 1
    gamma: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    test: Count = 1000

    @model_validator(mode="after")
    def _check_size(self) -> Parameters:
        if (self.n is None) is (self.total is None):
            raise ValueError("give n (records of each server) or total (of all)")
        if self.total is not None and self.total <= self.m:
            raise ValueError(f"{self.total} records leave none for some of the servers")
        return self


files = columns.no_files


def size(parameters: Parameters) -> int:
    """Return the number of records of all servers."""
    return sum(servers(parameters).values())


def width(_parameters: Parameters) -> int:
    """Return 2, how many numbers a record has."""
    return len(_FEATURES)


def servers(parameters: Parameters) -> dict[str, int]:
    """Return each server's number of records, the target first."""
    names = [TARGET, *(f"source{k + 1}" for k in range(parameters.m))]
    least, more = divmod(parameters.total or 0, len(names))
    sizes = {x: parameters.n or least + (at < more) for at, x in enumerate(names)}
    return sizes | {TARGET: sizes[TARGET] + parameters.test}


def facts(parameters: Parameters, _paths: Paths | None = None) -> dict[str, Any]:
    """Return the public metadata of the records as plain JSON values."""
    return {
        "title": "Simulated posterior drift (DTK section 6.1)",
        "grid": [1, 2],
        "domain": [1.0, 2.0],
        "unit": "number",
        "classes": ["0", "1"],
        "simulated": SIMULATED,
        "features": [feature.to_json() for feature in _FEATURES],
        "servers": servers(parameters),
        "bayes_error": BAYES_ERROR,
        "rows": None,
        "counts": {},
        "notes": [*_NOTES],
    }


def clients(
    parameters: Parameters, _n: int, generator: np.random.Generator
) -> ClientColumns:
    """Return the records of all ``servers``, a server after the other.

    Columns client_id, label, group (n,), the server's place, and curve (n, 2). Neither
    the records nor the uniforms behind the labels depend on ``gamma``.
    """
    sizes = [*servers(parameters).values()]
    samples = np.concatenate([generator.random((n, 3)) for n in sizes])
    group = np.repeat(np.arange(len(sizes)), sizes)
    x, chance = samples[:, :2], samples[:, 2]
    gamma = np.where(group == 0, 1.0, parameters.gamma)
    label = (chance < regression(x, gamma)).astype(np.int64)
    return columns.client_columns(x, label, group=group)


def regression(x: FloatArray, gamma: float | FloatArray) -> FloatArray:
    """Return P(Y = 1 | x) for x (n, 2), of a server with exponent ``gamma``.

    Exponent 1 is the target's: eta_T = 1/2 + s |u v|^(1/4) with u, v = x - 1/2 and s
    the sign of u v, at least 0 and at most 1.
    """
    product = np.prod(x - 0.5, axis=1)
    away = np.minimum(np.abs(product) ** 0.25, 0.5)
    return np.asarray(np.clip(0.5 + np.sign(product) * away**gamma, 0.0, 1.0))
