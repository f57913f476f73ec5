"""Curves that stay with their owners: only what is public about them is known here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat, field_validator, model_validator
from pydantic_core import PydanticCustomError

from curvote.chain.settings import Strict
from curvote.classes import Classes
from curvote.datasets import frames
from curvote.datasets.frames import Points
from curvote.datasets.listed import ONCE, STATED, check_one_way

SIMULATED = True  # there is no file to fetch, check or fingerprint
REMOTE = True  # nor a record: envelopes bring what its owners release


class Parameters(Strict):
    """What ``source:`` may say: grid and classes, which every client must share.

    ``negative`` and ``positive`` are the short form of two ``classes``.
    """

    name: Literal["remote"] = "remote"
    points: Points
    domain: tuple[FiniteFloat, FiniteFloat] = (0.0, 1.0)
    unit: str = "time"
    negative: str | None = None
    positive: str | None = None
    classes: Annotated[tuple[str, ...], STATED, ONCE] | None = None

    @field_validator("domain")
    @classmethod
    def _increasing(cls, domain: tuple[float, float]) -> tuple[float, float]:
        if not domain[0] < domain[1]:
            raise PydanticCustomError("order", "its ends must increase")
        return domain

    @model_validator(mode="after")
    def _one_way(self) -> Parameters:
        check_one_way(self, "positive", "negative")
        if self.classes is None and None in {self.negative, self.positive}:
            said = "name the classes, or negative and positive"
            raise PydanticCustomError("missing", said)
        if self.positive is not None and self.positive == self.negative:
            raise PydanticCustomError("same", "positive must differ from negative")
        return self


# Whoever is invited may take part.
files, size, width = frames.no_files, frames.no_size, frames.points


def classes(parameters: Parameters) -> Classes:
    """Return the classes in the pipeline's order, negative before positive."""
    two = parameters.negative or "", parameters.positive or ""
    return Classes(parameters.classes or two)


def facts(
    parameters: Parameters, _paths: Mapping[str, Path] | None = None
) -> dict[str, Any]:
    """Return what is public about the curves, as plain JSON values."""
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
) -> dict[str, NDArray[Any]]:
    """Return the columns of the table ``clients`` without a single row."""
    curves = np.empty((0, parameters.points))
    return frames.columns(curves, np.empty(0, dtype=np.int64))
