"""A data set: curves that step up or down in the middle."""

from typing import Any, Literal

import numpy as np

from curvote.chain.settings import Strict
from curvote.data import columns

SIMULATED = True
files, size = columns.always(()), columns.always(None)


class Parameters(Strict):
    """What ``source:`` of a pipeline may say."""

    name: Literal["steps"] = "steps"
    points: columns.Points = 20


def width(parameters: Parameters) -> int:
    """Return the number of grid points of a curve."""
    return parameters.points


def facts(parameters: Parameters, _paths: Any = None) -> dict[str, Any]:
    """Return what is public about the curves, as plain JSON values."""
    return {
        "title": "Steps up and down",
        "grid": np.linspace(0, 1, parameters.points).tolist(),
        "domain": [0.0, 1.0],
        "unit": "time",
        "classes": ["down", "up"],
        "simulated": SIMULATED,
        "rows": None,
        "counts": {},
        "notes": [],
    }


def clients(
    parameters: Parameters, n: int, generator: np.random.Generator
) -> dict[str, Any]:
    """Return ``n`` new clients: client_id, label, group (n,) and curve (n, T)."""
    label = generator.integers(2, size=n)
    late = np.arange(parameters.points) >= parameters.points // 2
    curve = np.where(late, 2.0 * label[:, None] - 1, 0)
    return columns.client_columns(curve + generator.normal(size=curve.shape), label)
