"""Curves that stay with their owners: only what is public about them is known here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, field_validator
from pydantic_core import PydanticCustomError

SIMULATED = True  # there is no file to fetch, check or fingerprint


class Parameters(BaseModel):
    """What ``source:`` may say: grid and classes, which every client must share."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["remote"] = "remote"
    points: Annotated[int, Field(ge=2, strict=True)]
    domain: tuple[FiniteFloat, FiniteFloat] = (0.0, 1.0)
    unit: str = "time"
    negative: str
    positive: str

    @field_validator("domain")
    @classmethod
    def _increasing(cls, domain: tuple[float, float]) -> tuple[float, float]:
        if not domain[0] < domain[1]:
            raise PydanticCustomError("order", "its ends must increase")
        return domain


def files(_parameters: Parameters) -> tuple[str, ...]:
    """Return nothing: there is no raw file."""
    return ()


def size(_parameters: Parameters) -> int | None:
    """Return None: whoever is invited may take part."""
    return None


def width(parameters: Parameters) -> int:
    """Return how many grid points every curve has by the pipeline."""
    return parameters.points


def facts(
    parameters: Parameters, _paths: Mapping[str, Path] | None = None
) -> dict[str, Any]:
    """Return what is public about the curves, as plain JSON values."""
    return {
        "title": "Curves that stay with their owners",
        "grid": np.linspace(*parameters.domain, parameters.points).tolist(),
        "domain": list(parameters.domain),
        "unit": parameters.unit,
        "classes": [parameters.negative, parameters.positive],
        "rows": None,
        "counts": {},
        "simulated": False,
        "notes": ["No curve is here: messages come by envelope."],
    }


def clients(
    parameters: Parameters, _n: int, _generator: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """Return the columns of the table ``clients`` without a single row."""
    none = np.empty(0, dtype=np.int64)
    return {
        "client_id": none,
        "label": none,
        "group": none,
        "curve": np.empty((0, parameters.points)),
    }
