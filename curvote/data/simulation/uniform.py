"""Simulation of records spread evenly over [-1, 1]^d, with a label of known law.

The label's logit is ``slope`` times the first number.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from pydantic import FiniteFloat
from scipy.special import expit

from curvote.base.validate import FloatArray
from curvote.chain.settings import Strict, WholeNumber
from curvote.data import columns
from curvote.data.columns import ClientColumns, Feature, Paths

SIMULATED = True


class Parameters(Strict):
    """Settings of ``source:``: how many numbers, and the label's slope."""

    name: Literal["uniform"] = "uniform"
    d: WholeNumber = 1
    slope: FiniteFloat = 4.0


files, size = columns.no_files, columns.no_size


def width(parameters: Parameters) -> int:
    """Return how many numbers a record has by the pipeline."""
    return parameters.d


def facts(parameters: Parameters, _paths: Paths | None = None) -> dict[str, Any]:
    """Return the public metadata of the records as plain JSON values."""
    features = [
        Feature(f"z{j + 1}", "number", -1, 1, "drawn from [-1, 1]")
        for j in range(parameters.d)
    ]
    return {
        "title": "Uniform records (MRMA figures 1 and A.6)",
        "grid": list(range(1, parameters.d + 1)),
        "domain": [1.0, float(parameters.d)],
        "unit": "number",
        "classes": ["-1", "+1"],
        "simulated": SIMULATED,
        "features": [feature.to_json() for feature in features],
        "slope": parameters.slope,
        "rows": None,
        "counts": {},
        "notes": [],
    }


def clients(parameters: Parameters, n: int, generator: Generator) -> ClientColumns:
    """Return ``n`` new clients: client_id, label, group (n,) and curve (n, d)."""
    values = generator.uniform(-1, 1, size=(n, parameters.d))
    chance = positive_probability(values[:, 0], parameters.slope)
    labels = (generator.random(n) < chance).astype(np.int64)
    return columns.client_columns(values, labels)


def positive_probability(first: FloatArray, slope: float) -> FloatArray:
    """Return eta(z) = P(Y = +1 | z), which the first number decides alone."""
    return np.asarray(expit(slope * first))
