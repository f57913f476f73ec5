"""Tables that stay with their servers: only what is public about them is known here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    FiniteFloat,
    field_validator,
)
from pydantic_core import PydanticCustomError

from curvote.chain.settings import Strict
from curvote.classes import Classes
from curvote.datasets import frames
from curvote.datasets.tables.features import Feature

SIMULATED = True  # there is no file to fetch, check or fingerprint
REMOTE = True  # nor a record: envelopes bring what its owners release


def _text(value: object) -> object:
    """Refuse what YAML takes for something else than the text that was meant."""
    if isinstance(value, bool):
        words = "yes, true or on" if value else "no, false or off"
        raise PydanticCustomError("quotes", f"put {words} in quotes to make it a text")
    if isinstance(value, int | float):
        raise PydanticCustomError("quotes", f'put {value} in quotes: "{value}"')
    return value


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        said = ", ".join(twice)
        raise PydanticCustomError("repeated", f"{said} stands there twice")
    return names


Word = Annotated[
    str, BeforeValidator(_text), Field(pattern=r"^\S(.*\S)?$", max_length=60)
]
# A server's name stands in settings (a.b.NAME) and in names of files.
Server = Annotated[
    str,
    BeforeValidator(_text),
    Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60),
]
Bounds = tuple[FiniteFloat, FiniteFloat]
Names = AfterValidator(_distinct)


class Parameters(Strict):
    """What ``source:`` may say: servers, features with public bounds, and classes.

    Every server's table has the same columns; ``record`` is the word for a row.
    """

    name: Literal["remote_table"] = "remote_table"
    servers: Annotated[tuple[Server, ...], Field(min_length=1), Names]
    features: Annotated[dict[Word, Bounds], Field(min_length=1)]
    classes: Annotated[tuple[Word, ...], Field(min_length=2), Names]
    record: Word = "record"

    @field_validator("features")
    @classmethod
    def _increasing(cls, features: dict[str, Bounds]) -> dict[str, Bounds]:
        wrong = [name for name, (low, high) in features.items() if not low < high]
        if wrong:
            said = f"the first bound must be below the second: {', '.join(wrong)}"
            raise PydanticCustomError("order", said)
        return features


files, size = frames.no_files, frames.no_size


def width(parameters: Parameters) -> int:
    """Return how many features a record has by the pipeline."""
    return len(parameters.features)


def servers(parameters: Parameters) -> dict[str, None]:
    """Return the servers; how many records each has is told by its release."""
    return dict.fromkeys(parameters.servers)


def classes(parameters: Parameters) -> Classes:
    """Return the classes in the pipeline's order."""
    return Classes(parameters.classes)


def facts(
    parameters: Parameters, _paths: Mapping[str, Path] | None = None
) -> dict[str, Any]:
    """Return what is public about the records, as plain JSON values."""
    stated = parameters.features.items()
    features = [Feature(name, "", *ends, "stated by the user") for name, ends in stated]
    return {
        "title": "Tables that stay with their servers",
        "grid": list(range(len(features))),
        "domain": [0, len(features) - 1],
        "unit": "feature",
        "classes": list(parameters.classes),
        "features": [feature.to_json() for feature in features],
        "servers": servers(parameters),
        "record": parameters.record,
        "rows": None,
        "counts": {},
        "simulated": False,
        "notes": ["No record is here: each server sends what it releases."],
    }


def clients(
    parameters: Parameters, _n: int, _generator: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """Return the columns of the table ``clients`` without a single row."""
    records = np.empty((0, len(parameters.features)))
    return frames.columns(records, np.empty(0, dtype=np.int64))
