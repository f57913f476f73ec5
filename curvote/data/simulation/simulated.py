"""Simulation of curves (MRMA section 6), with a logistic label of known Bayes error."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Discriminator, Field, FiniteFloat, Tag

from curvote.base import validate
from curvote.base.validate import FloatArray
from curvote.chain.settings import Strict
from curvote.data import columns
from curvote.data.columns import ClientColumns, Paths, Points

Slope = Literal["decaying"] | tuple[float, ...]

SIMULATED = True
POINTS = 100
FACTS: dict[str, Any] = {
    "title": "Simulated curves (MRMA section 6)",
    "domain": [0.0, 1.0],
    "unit": "time",
    "classes": ["-1", "+1"],
    "simulated": SIMULATED,
    "rows": None,
    "counts": {},
}

_J = np.arange(1, 51)
_SIGN = (-1.0) ** (_J + 1)
_ZETA = _SIGN / _J
_EDGE = np.sqrt(3.0)  # xi is uniform on [-_EDGE, _EDGE]
_FAR = 30.0  # beyond a logit of this size the least error is below 1e-13

DECAY: FloatArray = _SIGN / _J**2.0
BETA: FloatArray = 4 * DECAY
INTERCEPT = 0.1

_Number = Annotated[FiniteFloat, Field(ge=-1e6, le=1e6)]
_Numbers = Annotated[tuple[_Number, ...], Field(max_length=len(_J))]


class Parameters(Strict):
    """Settings of ``source:``: the grid points, and the label's law.

    ``slope`` is `BETA` (decaying) or at most 50 coefficients on phi_1, phi_2, ..., each
    at most 1e6 in size; those that are missing are 0. ``intercept`` is alpha0.
    """

    name: Literal["simulated"] = "simulated"
    points: Points = POINTS
    slope: Annotated[
        Annotated[Literal["decaying"], Tag("word")] | Annotated[_Numbers, Tag("list")],
        Discriminator(lambda value: "word" if isinstance(value, str) else "list"),
    ] = "decaying"
    intercept: FiniteFloat = INTERCEPT


files, size, width = columns.no_files, columns.no_size, columns.grid_points


def facts(parameters: Parameters, _paths: Paths | None = None) -> dict[str, Any]:
    """Return the public metadata of the curves as plain JSON values."""
    return FACTS | {
        "grid": np.linspace(0.0, 1.0, parameters.points).tolist(),
        "notes": _law_notes(parameters),
        "bayes_error": bayes_error(parameters.slope, parameters.intercept),
    }


def clients(parameters: Parameters, n: int, generator: Generator) -> ClientColumns:
    """Return ``n`` new clients: client_id, label, group (n,) and curve (n, T)."""
    law = _custom_law(parameters)
    curves, labels = generate(generator, n, parameters.points, **law)
    return columns.client_columns(curves, labels)


def generate(
    generator: Generator,
    n: int,
    points: int = POINTS,
    beta: FloatArray = BETA,
    *,
    intercept: float = INTERCEPT,
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return ``n`` curves (n, points) on an equidistant grid of [0, 1], labels 0/1.

    ``beta`` (50,) holds the slope's coefficients on phi. The label's logit
    ``intercept`` + integral X beta is exact: phi is orthonormal, so the integral is the
    product of coefficients.
    """
    n = validate.at_least(1, n=n)
    points = validate.at_least(2, points=points)
    xi = generator.uniform(-_EDGE, _EDGE, size=(n, len(_J)))
    positive = _logistic(intercept + xi @ (_ZETA * beta))
    labels = (generator.random(n) < positive).astype(np.int64)
    t = np.linspace(0.0, 1.0, points)
    cosines: FloatArray = np.sqrt(2.0) * np.cos(np.pi * np.outer(_J - 1, t))
    cosines[0] = 1.0
    return (xi * _ZETA) @ cosines, labels


def coefficients(slope: Slope) -> FloatArray:
    """Return the basis coefficients (50,) of a ``slope`` setting."""
    if slope == "decaying":
        return BETA
    return np.concatenate([slope, np.zeros(len(_J) - len(slope))])


@lru_cache
def bayes_error(slope: Slope = "decaying", intercept: float = INTERCEPT) -> float:
    """Return E min(eta, 1 - eta), the least possible error, to better than 1e-4.

    The logit less its intercept is a sum of independent uniforms on [-s_j, s_j]; its
    density on [-L, L] is the Fourier series with coefficients prod_j sin(s_j t) /
    (s_j t).
    """
    reach = _EDGE * np.abs(_ZETA * coefficients(slope))
    end = 1.1 * reach.sum()
    if end < 1e-5:  # the error changes by less than a quarter of it
        return float(_logistic(-np.abs(np.float64(intercept))))
    t = np.pi * np.arange(1, 401) / end
    characteristic = np.sinc(np.outer(t, reach) / np.pi).prod(axis=1)
    near, far = np.clip([-intercept - _FAR, -intercept + _FAR], -end, end)
    s = np.linspace(near, far, 4001)
    density = (0.5 + characteristic @ np.cos(np.outer(t, s))) / end
    return float(np.trapezoid(density * _logistic(-np.abs(intercept + s)), s))


def _custom_law(parameters: Parameters) -> dict[str, Any]:
    """Return beta and intercept where the pipeline states its own law."""
    law = parameters.model_dump(include={"slope", "intercept"}, exclude_defaults=True)
    if "slope" in law:
        law["beta"] = coefficients(law.pop("slope"))
    return law


def _law_notes(parameters: Parameters) -> list[str]:
    """Return the law of the label where it is not the published one."""
    slope, intercept = parameters.slope, parameters.intercept
    if not _custom_law(parameters):
        return []
    numbers = slope if isinstance(slope, str) else ", ".join(f"{x:g}" for x in slope)
    return [f"The slope on phi_1, phi_2, ...: {numbers}; the intercept: {intercept:g}."]


def _logistic(logit: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):  # exp(710) is infinite, and 0 the right answer
        return np.asarray(1 / (1 + np.exp(-logit)))
