"""A data set of feature vectors that comes in pieces, for the tests of the chain."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

SIMULATED = False
SIZES = (40, 40, 20)
_STATED: list[dict[str, Any]] = [
    {"name": "age", "unit": "years", "lower": 0.0, "upper": 100.0, "centre": 40.0},
    {"name": "dose", "unit": "mg", "lower": -1.0, "upper": 3.0, "centre": 1.0},
]
FEATURES = [feature | {"why": "invented"} for feature in _STATED]


class Parameters(BaseModel):
    """Nothing to choose."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["fake"] = "fake"


def files(_parameters: Parameters) -> tuple[str, ...]:
    """Return nothing: there is no raw file."""
    return ()


def size(_parameters: Parameters) -> int:
    """Return how many clients there are."""
    return sum(SIZES)


def facts(_parameters: Parameters, _paths: object) -> dict[str, Any]:
    """Return what is public."""
    return {
        "title": "Fake",
        "grid": [0.0, 1.0],
        "domain": [0.0, 1.0],
        "unit": "feature",
        "classes": ["no", "yes"],
        "rows": sum(SIZES),
        "counts": {},
        "simulated": False,
        "notes": ["10 of 100 rows repeat an earlier one."],
        "features": FEATURES,
        "duplicates": {"policy": "keep", "rows": 100, "distinct": 90},
        "missing": {"policy": "centre", "counts": {"age": 3, "dose": 0}},
    }


def pieces(_parameters: Parameters, _paths: object) -> Iterator[dict[str, Any]]:
    """Yield the clients, some at a time."""
    rng = np.random.default_rng(4)
    first = 0
    for n in SIZES:
        label = rng.integers(0, 2, n)
        record = np.column_stack([40 + 30 * label, 1 + label]) + rng.normal(size=(n, 2))
        ids = np.arange(first, first + n)
        first += n
        yield {"client_id": ids, "label": label, "group": ids, "curve": record}


def clients(parameters: Parameters, paths: object) -> dict[str, Any]:
    """Return all clients."""
    made = list(pieces(parameters, paths))
    return {name: np.concatenate([piece[name] for piece in made]) for name in made[0]}
