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
from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from curvote.chain.settings import Strict
from curvote.datasets import frames
from curvote.datasets.tables.features import Feature

Paths = Mapping[str, Path]
Digit = Annotated[int, Field(ge=0, le=9, strict=True)]
Part = Literal["train", "test"]
PARTS: dict[str, tuple[Part, ...]] = {
    "train": ("train",),
    "test": ("test",),
    "both": ("train", "test"),
}


class DigitParameters(Strict):
    """What ``source:`` may say: the two digits, and which part of the data."""

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

    ``names`` says which raw files a part has, ``counts`` how often each digit is in it
    by the published counts, None if that is unknown. ``side`` is the images' height
    and width, ``notes`` what a report must state beside the unit of privacy.
    """

    title: str
    side: int
    lower: float
    upper: float
    why: str
    names: Callable[[Part], tuple[str, ...]]
    counts: Callable[[Part], Mapping[str, int] | None]
    read: Callable[[Part, Paths], Digits]
    notes: Callable[[DigitParameters, Paths], list[str]] = lambda *_: []

    def files(self, parameters: DigitParameters) -> tuple[str, ...]:
        """Return the names of the raw files in data/sources.toml."""
        return tuple(
            name for part in PARTS[parameters.part] for name in self.names(part)
        )

    def size(self, parameters: DigitParameters) -> int | None:
        """Return how many images there are by the published counts, None if unknown.

        Nothing is loaded.
        """
        counts = [self.counts(part) for part in PARTS[parameters.part]]
        if any(count is None for count in counts):
            return None
        chosen = str(parameters.negative), str(parameters.positive)
        return sum(count[digit] for count in counts if count for digit in chosen)

    def width(self, _parameters: DigitParameters) -> int:
        """Return how many pixels an image has by the published layout."""
        return self.side**2

    def clients(
        self, parameters: DigitParameters, paths: Paths
    ) -> dict[str, NDArray[Any]]:
        """Return client_id, label, group (n,) and curve (n, p) of the two digits.

        An image's id is its place in the publisher's file, counted from 0; those of
        the test file go on after the publisher's images for training.
        """
        parts = [self.read(part, paths) for part in PARTS[parameters.part]]
        labels = np.concatenate([part.labels for part in parts])
        chosen = np.isin(labels, (parameters.negative, parameters.positive))
        pixels = np.concatenate([part.pixels for part in parts])[chosen]
        return frames.columns(
            pixels.astype(np.float64),
            (labels[chosen] == parameters.positive).astype(np.int64),
            np.concatenate([part.ids for part in parts])[chosen],
        )

    def facts(self, parameters: DigitParameters, paths: Paths) -> dict[str, Any]:
        """Return what is public about the images, as plain JSON values."""
        table = self.clients(parameters, paths)
        classes = [str(parameters.negative), str(parameters.positive)]
        n, p = table["curve"].shape
        both = {"rows": n, "distinct": distinct(table["curve"], table["label"])}
        notes = self.notes(parameters, paths)
        return frames.facts(
            frames.count(table["label"], classes),
            classes,
            title=f"{self.title}: {classes[1]} against {classes[0]}",
            grid=list(range(p)),
            domain=[0, p - 1],
            unit="pixel",
            notes=["The unit of privacy is one image.", *notes],
            features=self.features(),
            duplicates={"policy": "keep", **both},
            missing={"policy": "keep", "counts": {}},
        )

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


def distinct(pixels: NDArray[np.float64], labels: NDArray[np.int64]) -> int:
    """Return how many pairs of image and label differ from each other."""
    rows = np.column_stack([pixels, labels])
    return len(np.unique(rows.view(f"V{rows.shape[1] * rows.itemsize}")))
