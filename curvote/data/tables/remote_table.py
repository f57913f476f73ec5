"""Tables that stay with their servers: a source of public metadata only."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    FiniteFloat,
    field_validator,
)
from pydantic_core import PydanticCustomError

from curvote.base.classes import Classes
from curvote.chain.settings import Strict
from curvote.data import columns
from curvote.data.columns import ClientColumns, Feature, Paths

SIMULATED = True  # there is no file to fetch, check or fingerprint
REMOTE = True  # nor a record: envelopes bring what its owners release
LONGEST = 60
_SERVER = re.compile("[A-Za-z0-9][A-Za-z0-9_-]*")


def _check_text(value: object) -> object:
    """Return the text; refuse what YAML reads as another type."""
    if isinstance(value, bool):
        words = str(value).lower()
        raise PydanticCustomError("quotes", f"put {words} in quotes to make it a text")
    if isinstance(value, int | float):
        raise PydanticCustomError("quotes", f'put {value} in quotes: "{value}"')
    return value


def distinct_names(minimum: int) -> AfterValidator:
    """Return the validator of a list of ``minimum`` or more distinct names."""

    def check_names(names: tuple[str, ...]) -> tuple[str, ...]:
        if len(names) < minimum:
            raise PydanticCustomError("few", f"give {minimum} or more")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise PydanticCustomError("repeated", f"{', '.join(twice)} stands twice")
        return names

    return AfterValidator(check_names)


def _check_word(text: str) -> str:
    if not text.isprintable() or text != text.strip() or not 0 < len(text) <= LONGEST:
        message = f"{text!r} is no text of 1 to {LONGEST} characters without margins"
        raise PydanticCustomError("word", message)
    return text


def _check_server_name(text: str) -> str:
    """Return the name if it is fit for settings and file names."""
    if not _SERVER.fullmatch(text):
        message = f"{text!r}: use letters, digits, - and _ only, not - or _ first"
        raise PydanticCustomError("server", message)
    return text


Word = Annotated[str, BeforeValidator(_check_text), AfterValidator(_check_word)]
Server = Annotated[Word, AfterValidator(_check_server_name)]
Bounds = tuple[FiniteFloat, FiniteFloat]


class Parameters(Strict):
    """Settings of ``source:``: servers, bounded features, classes.

    Every server's table has the same columns; ``record`` is the word for a row.
    """

    name: Literal["remote_table"] = "remote_table"
    servers: Annotated[tuple[Server, ...], distinct_names(1)]
    features: Annotated[dict[Word, Bounds], Field(min_length=1)]
    classes: Annotated[tuple[Word, ...], distinct_names(2)]
    record: Word = "record"

    @field_validator("features")
    @classmethod
    def _check_bounds(cls, features: dict[str, Bounds]) -> dict[str, Bounds]:
        wrong = [name for name, (low, high) in features.items() if not low < high]
        if wrong:
            message = f"the first bound must be below the second: {', '.join(wrong)}"
            raise PydanticCustomError("order", message)
        return features


files, size = columns.no_files, columns.no_size


def width(parameters: Parameters) -> int:
    """Return how many features a record has by the pipeline."""
    return len(parameters.features)


def servers(parameters: Parameters) -> dict[str, None]:
    """Return the servers; their releases say how many records each has."""
    return dict.fromkeys(parameters.servers)


def classes(parameters: Parameters) -> Classes:
    """Return the classes in the pipeline's order."""
    return Classes(parameters.classes)


def facts(parameters: Parameters, _paths: Paths | None = None) -> dict[str, Any]:
    """Return the public metadata of the records."""
    why, bounds = "stated by the user", parameters.features.items()
    features = [Feature(name, "", *ends, why) for name, ends in bounds]
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
) -> ClientColumns:
    """Return the columns of the table ``clients`` without rows."""
    records = np.empty((0, len(parameters.features)))
    return columns.client_columns(records, np.empty(0, dtype=np.int64))
