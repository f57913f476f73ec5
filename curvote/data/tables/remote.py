"""Curves that stay with their owners: a source of public metadata only."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import FiniteFloat, field_validator, model_validator
from pydantic_core import PydanticCustomError

from curvote.base.classes import Classes
from curvote.chain.settings import Strict
from curvote.data import columns
from curvote.data.columns import (
    DISTINCT_CLASSES,
    EXPLICIT_CLASSES,
    ClientColumns,
    Paths,
    Points,
    check_one_way,
)

SIMULATED = True  # there is no file to fetch, check or fingerprint
REMOTE = True  # nor a record: envelopes bring what its owners release


class Parameters(Strict):
    """Settings of ``source:``: grid and classes that all clients share.

    ``negative`` and ``positive`` are the short form of two ``classes``.
    """

    name: Literal["remote"] = "remote"
    points: Points
    domain: tuple[FiniteFloat, FiniteFloat] = (0.0, 1.0)
    unit: str = "time"
    negative: str | None = None
    positive: str | None = None
    classes: Annotated[tuple[str, ...], EXPLICIT_CLASSES, DISTINCT_CLASSES] | None = (
        None
    )

    @field_validator("domain")
    @classmethod
    def _check_domain(cls, domain: tuple[float, float]) -> tuple[float, float]:
        if not domain[0] < domain[1]:
            raise PydanticCustomError("order", "its ends must increase")
        return domain

    @model_validator(mode="after")
    def _check_one_way(self) -> Parameters:
        check_one_way(self, "positive", "negative")
        if self.classes is None and None in {self.negative, self.positive}:
            message = "name the classes, or negative and positive"
            raise PydanticCustomError("missing", message)
        if self.positive is not None and self.positive == self.negative:
            raise PydanticCustomError("same", "positive must differ from negative")
        return self


# Whoever is invited may take part.
files, size, width = columns.no_files, columns.no_size, columns.grid_points


def classes(parameters: Parameters) -> Classes:
    """Return the classes in the pipeline's order, negative before positive."""
    two = parameters.negative or "", parameters.positive or ""
    return Classes(parameters.classes or two)


def facts(parameters: Parameters, _paths: Paths | None = None) -> dict[str, Any]:
    """Return the public metadata of the curves."""
    return {
        "title": "Curves that stay with their owners",
        "grid": np.linspace(*parameters.domain, parameters.points).tolist(),
        "domain": list(parameters.domain),
        "unit": parameters.unit,
        "classes": list(classes(parameters)),
        "rows": None,
        "counts": {},
        "simulated": False,
        "notes": ["No curve is here: messages come by envelope."],
    }


def clients(
    parameters: Parameters, _n: int, _generator: np.random.Generator
) -> ClientColumns:
    """Return the columns of the table ``clients`` without rows."""
    curves = np.empty((0, parameters.points))
    return columns.client_columns(curves, np.empty(0, dtype=np.int64))
