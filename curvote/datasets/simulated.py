"""Simulated curves of MRMA section 6, with a logistic label of known Bayes error."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from curvote import validate

Array = NDArray[np.float64]

SIMULATED = True
POINTS = 100
FACTS: dict[str, Any] = {
    "title": "Simulated curves (MRMA section 6)",
    "grid": np.linspace(0.0, 1.0, POINTS).tolist(),
    "domain": [0.0, 1.0],
    "unit": "time",
    "classes": ["-1", "+1"],
    "simulated": SIMULATED,
}

_J = np.arange(1, 51)
_SIGN = (-1.0) ** (_J + 1)
_ZETA = _SIGN / _J
_ALPHA = 0.1
_WIDTH = np.sqrt(3.0)

DECAY: Array = _SIGN / _J**2.0
BETA: Array = 4 * DECAY


class Parameters(BaseModel):
    """What ``source:`` of a pipeline may say: the number of grid points."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["simulated"] = "simulated"
    points: Annotated[int, Field(ge=2, strict=True)] = POINTS


def files(_parameters: Parameters) -> tuple[str, ...]:
    """Return nothing: there is no raw file."""
    return ()


def size(_parameters: Parameters) -> int | None:
    """Return None: there are as many clients as a pipeline asks for."""
    return None


def facts(
    parameters: Parameters, _paths: Mapping[str, Path] | None = None
) -> dict[str, Any]:
    """Return what is public about the curves, as plain JSON values."""
    grid = np.linspace(0.0, 1.0, parameters.points).tolist()
    error = {"bayes_error": bayes_error()}
    return FACTS | {"grid": grid, "rows": None, "counts": {}, "notes": []} | error


def clients(
    parameters: Parameters, n: int, generator: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """Return ``n`` new clients: client_id, label, group (n,) and curve (n, T)."""
    curves, labels = generate(generator, n, parameters.points)
    ids = np.arange(n)
    return {"client_id": ids, "label": labels, "group": ids, "curve": curves}


def generate(
    generator: np.random.Generator, n: int, points: int = POINTS, beta: Array = BETA
) -> tuple[Array, NDArray[np.int64]]:
    """Return ``n`` curves (n, points) on an equidistant grid of [0, 1], labels 0/1.

    ``beta`` (50,) holds the slope's coefficients on phi. The label's logit alpha0 +
    integral X beta is exact: phi is orthonormal, so the integral is the product of
    coefficients.
    """
    n = validate.at_least(1, n=n)
    points = validate.at_least(2, points=points)
    xi = generator.uniform(-_WIDTH, _WIDTH, size=(n, len(_J)))
    positive = 1 / (1 + np.exp(-(_ALPHA + xi @ (_ZETA * beta))))
    labels = (generator.random(n) < positive).astype(np.int64)
    return (xi * _ZETA) @ _phi(np.linspace(0.0, 1.0, points)), labels


@lru_cache
def bayes_error() -> float:
    """Return E min(eta, 1 - eta), the least possible error, to better than 1e-4.

    The logit less alpha0 is a sum of independent uniforms on [-s_j, s_j]; its density
    on [-L, L] is the Fourier series with coefficients prod_j sin(s_j t) / (s_j t).
    """
    reach = _WIDTH * np.abs(_ZETA * BETA)
    end = 1.1 * reach.sum()
    t = np.pi * np.arange(1, 401) / end
    characteristic = np.sinc(np.outer(t, reach) / np.pi).prod(axis=1)
    s = np.linspace(-end, end, 4001)
    density = (0.5 + characteristic @ np.cos(np.outer(t, s))) / end
    error = 1 / (1 + np.exp(np.abs(_ALPHA + s)))
    return float(np.trapezoid(density * error, s))


def _phi(t: Array) -> Array:
    """Return phi_1 = 1, phi_j = sqrt(2) cos((j - 1) pi t) on ``t``: (50, T)."""
    cosines: Array = np.sqrt(2.0) * np.cos(np.pi * np.outer(_J - 1, t))
    cosines[0] = 1.0
    return cosines
