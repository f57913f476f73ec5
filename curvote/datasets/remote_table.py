"""Tables that stay with their servers: only what is public about them is known here."""

from __future__ import annotations

import re
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
LONGEST = 60
_SERVER = re.compile("[A-Za-z0-9][A-Za-z0-9_-]*")


def _text(value: object) -> object:
    """Refuse what YAML takes for something else than the text that was meant."""
    if isinstance(value, bool):
        words = str(value).lower()
        raise PydanticCustomError("quotes", f"put {words} in quotes to make it a text")
    if isinstance(value, int | float):
        raise PydanticCustomError("quotes", f'put {value} in quotes: "{value}"')
    return value


def distinct(least: int) -> AfterValidator:
    """Return the check of a list for ``least`` names or more, all different."""

    def check(names: tuple[str, ...]) -> tuple[str, ...]:
        if len(names) < least:
            raise PydanticCustomError("few", f"give {least} or more")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise PydanticCustomError("repeated", f"{', '.join(twice)} stands twice")
        return names

    return AfterValidator(check)


def _word(text: str) -> str:
    if not text.isprintable() or text != text.strip() or not 0 < len(text) <= LONGEST:
        said = f"{text!r} is no text of 1 to {LONGEST} characters without margins"
        raise PydanticCustomError("word", said)
    return text


def _server(text: str) -> str:
    """Keep to what may stand in dotted settings and in names of files."""
    if not _SERVER.fullmatch(text):
        said = f"{text!r}: use letters, digits, - and _ only, not - or _ first"
        raise PydanticCustomError("server", said)
    return text


Word = Annotated[str, BeforeValidator(_text), AfterValidator(_word)]
Server = Annotated[Word, AfterValidator(_server)]
Bounds = tuple[FiniteFloat, FiniteFloat]


class Parameters(Strict):
    """What ``source:`` may say: servers, features with public bounds, and classes.

    Every server's table has the same columns; ``record`` is the word for a row.
    """

    name: Literal["remote_table"] = "remote_table"
    servers: Annotated[tuple[Server, ...], distinct(1)]
    features: Annotated[dict[Word, Bounds], Field(min_length=1)]
    classes: Annotated[tuple[Word, ...], distinct(2)]
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
