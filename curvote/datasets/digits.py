"""Two handwritten digits against each other: what MNIST and the zip codes share.

An image is a vector of pixels, row by row, with public bounds. The unit of privacy is
one image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from curvote.datasets.sources import Source
from curvote.datasets.tables.features import Feature
from curvote.errors import UserError

Digit = Annotated[int, Field(ge=0, le=9, strict=True)]
Part = Literal["train", "test"]
PARTS: dict[str, tuple[Part, ...]] = {
    "train": ("train",),
    "test": ("test",),
    "both": ("train", "test"),
}


class DigitParameters(BaseModel):
    """What ``source:`` may say: the two digits, and which part of the data."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    negative: Digit = 3
    positive: Digit = 8
    part: Literal["train", "test", "both"] = "both"

    @field_validator("positive")
    @classmethod
    def _two_digits(cls, positive: int, info: ValidationInfo) -> int:
        if positive == info.data.get("negative"):
            raise PydanticCustomError("same", "it must differ from negative")
        return positive


@dataclass(frozen=True, eq=False)
class Digits:
    """Images of one part: ``pixels`` (n, p), ``labels`` (n,) 0 to 9, ``ids`` (n,)."""

    pixels: NDArray[Any]
    labels: NDArray[np.int64]
    ids: NDArray[np.int64]


@dataclass(frozen=True)
class Edition:
    """One collection: its pixels and bounds, and how a part is read.

    ``side`` is the images' height and width.
    """

    title: str
    side: int
    lower: float
    upper: float
    why: str
    read: Callable[[Part, Mapping[str, Path]], Digits]

    def features(self) -> list[dict[str, Any]]:
        """Return name, unit and public bounds of every pixel, row by row."""
        places = (
            (row, column) for row in range(self.side) for column in range(self.side)
        )
        names = (f"row {row + 1}, column {column + 1}" for row, column in places)
        return [
            Feature(name, "grey", self.lower, self.upper, self.why).to_json()
            for name in names
        ]


def columns(
    edition: Edition, parameters: DigitParameters, paths: Mapping[str, Path]
) -> dict[str, NDArray[Any]]:
    """Return client_id, label, group (n,) and curve (n, p) of the two digits."""
    parts = [edition.read(part, paths) for part in PARTS[parameters.part]]
    labels = np.concatenate([part.labels for part in parts])
    chosen = np.isin(labels, (parameters.negative, parameters.positive))
    pixels = np.concatenate([part.pixels for part in parts])[chosen]
    return {
        "client_id": np.concatenate([part.ids for part in parts])[chosen],
        "label": (labels[chosen] == parameters.positive).astype(np.int64),
        "group": np.arange(len(pixels)),
        "curve": pixels.astype(np.float64),
    }


def facts(
    edition: Edition,
    parameters: DigitParameters,
    paths: Mapping[str, Path],
    notes: list[str],
) -> dict[str, Any]:
    """Return what is public about the images, as plain JSON values."""
    table = columns(edition, parameters, paths)
    classes = [str(parameters.negative), str(parameters.positive)]
    counts = np.bincount(table["label"], minlength=2).tolist()
    n, p = table["curve"].shape
    both = {"rows": n, "distinct": distinct(table["curve"], table["label"])}
    return {
        "title": f"{edition.title}: {classes[1]} against {classes[0]}",
        "grid": list(range(p)),
        "domain": [0, p - 1],
        "unit": "pixel",
        "classes": classes,
        "rows": n,
        "counts": dict(zip(classes, counts, strict=True)),
        "simulated": False,
        "notes": ["The unit of privacy is one image.", *notes],
        "features": edition.features(),
        "duplicates": {"policy": "keep", **both},
        "missing": {"policy": "keep", "counts": {}},
    }


def distinct(pixels: NDArray[np.float64], labels: NDArray[np.int64]) -> int:
    """Return how many pairs of image and label differ from each other."""
    rows = np.column_stack([pixels, labels])
    return len(np.unique(rows.view(f"V{rows.shape[1] * rows.itemsize}")))


def check_digits(labels: NDArray[np.int64], source: Source) -> None:
    """Raise a UserError unless each digit comes as often as published."""
    found = np.bincount(labels, minlength=10).tolist()
    wrong = [
        f"{digit} {n} instead of {source.counts.get(str(digit), 0)}"
        for digit, n in enumerate(found)
        if n != source.counts.get(str(digit), 0)
    ]
    if wrong:
        raise UserError(f"wrong counts: {', '.join(wrong)}.")


def check_rows(n: int, source: Source) -> None:
    """Raise a UserError unless there are as many rows as published."""
    if n != source.rows:
        raise UserError(f"wrong counts: {n} rows instead of {source.rows}.")
