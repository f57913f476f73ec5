"""Published images of several classes: what digits, clothes and objects share.

An image is a vector of grey or colour values with public bounds. The unit of privacy is
one image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from curvote.chain.settings import Strict, Whole
from curvote.classes import Classes
from curvote.datasets import frames
from curvote.datasets.frames import Split
from curvote.datasets.tables.features import Feature
from curvote.errors import UserError

Paths = Mapping[str, Path]
Part = Literal["train", "test"]
PARTS: dict[str, tuple[Part, ...]] = {
    "train": ("train",),
    "test": ("test",),
    "both": ("train", "test"),
}


class ImageParameters(Strict):
    """What ``source:`` may say: which part of the data, and whether its split holds.

    With ``split: published`` who tests is drawn from the publisher's test part, and
    everybody else from its training part. ``side`` makes images smaller, by the means
    of equal squares: it divides the publisher's.
    """

    part: Literal["train", "test", "both"] = "both"
    split: Split | None = None
    side: Whole | None = None

    @field_validator("split")
    @classmethod
    def _both(cls, split: Split | None, info: ValidationInfo) -> Split | None:
        if split and info.data.get("part") != "both":
            raise PydanticCustomError("part", "it needs both parts: leave part out")
        return split

    @property
    def places(self) -> tuple[int, ...]:
        """Return the publisher's numbers of the classes, in the pipeline's order."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Images:
    """Images of one part: ``pixels`` (n, p), ``labels`` (n,) from 0, ``ids`` (n,)."""

    pixels: NDArray[Any]
    labels: NDArray[np.int64]
    ids: NDArray[np.int64]


Names = Callable[[Any, Part], tuple[str, ...]]
Counts = Callable[[Any, Part], Mapping[str, int] | None]


@dataclass(frozen=True)
class Edition:
    """One collection: its classes, its pixels and bounds, and how a part is read.

    ``known`` names the classes by the publisher's numbers. ``names`` says which raw
    files a part has, ``counts`` how often each number is in it by the published counts,
    None if that is unknown. ``side`` is the images' height and width, ``planes`` are
    their colours, one after the other, ``notes`` what a report must state beside the
    unit of privacy.
    """

    title: str
    known: tuple[str, ...]
    side: int
    lower: float
    upper: float
    why: str
    names: Names
    counts: Counts
    read: Callable[[Any, Part, Paths], Images]
    planes: tuple[str, ...] = ("grey",)
    notes: Callable[[Any, Paths], list[str]] = lambda *_: []

    def files(self, parameters: ImageParameters) -> tuple[str, ...]:
        """Return the names of the raw files in data/sources.toml, each once."""
        parts = PARTS[parameters.part]
        named = (name for part in parts for name in self.names(parameters, part))
        return tuple(dict.fromkeys(named))

    def size(self, parameters: ImageParameters) -> int | None:
        """Return how many images there are by the published counts, None if unknown.

        Nothing is loaded.
        """
        counts = [self.counts(parameters, part) for part in PARTS[parameters.part]]
        if any(count is None for count in counts):
            return None
        chosen = [str(place) for place in parameters.places]
        return sum(count[place] for count in counts if count for place in chosen)

    def width(self, parameters: ImageParameters) -> int:
        """Return how many values an image has by the published layout."""
        return self._side(parameters) ** 2 * len(self.planes)

    def _side(self, parameters: ImageParameters) -> int:
        """Return the side asked for; one that does not divide is a UserError."""
        side = parameters.side or self.side
        if self.side % side:
            message = f"{side} does not divide {self.side}, the side of an image."
            raise UserError(message, where=("source", "side"))
        return side

    def classes(self, parameters: ImageParameters) -> Classes:
        """Return the names of the classes that are told apart."""
        return Classes(self.known[place] for place in parameters.places)

    def clients(
        self, parameters: ImageParameters, paths: Paths
    ) -> dict[str, NDArray[Any]]:
        """Return client_id, label, group (n,) and curve (n, p) of the chosen classes.

        An image's id is its place in the publisher's file, counted from 0; those of
        the test file go on after the publisher's images for training. With ``split``
        there is a column part, too: 1 for the publisher's test part.
        """
        images, tested = self._chosen(parameters, paths)
        return frames.columns(
            self._smaller(images.pixels, self._side(parameters)),
            images.labels,
            images.ids,
            part=tested if parameters.split else None,
        )

    def facts(self, parameters: ImageParameters, paths: Paths) -> dict[str, Any]:
        """Return what is public about the images, as plain JSON values."""
        images, tested = self._chosen(parameters, paths)
        classes, n = self.classes(parameters), len(images.pixels)
        p, side = self.width(parameters), self._side(parameters)
        both = {"rows": n, "distinct": distinct(images.pixels, images.labels)}
        notes = self.notes(parameters, paths)
        return frames.facts(
            frames.count(images.labels, classes),
            classes,
            title=self._titled(classes),
            grid=list(range(p)),
            domain=[0, p - 1],
            unit="pixel",
            notes=["The unit of privacy is one image.", *notes],
            features=self.features(side),
            duplicates={"policy": "keep", **both},
            missing={"policy": "keep", "counts": {}},
            **frames.parts(tested if parameters.split else None),
        )

    def _smaller(self, pixels: NDArray[Any], side: int) -> NDArray[np.float64]:
        """Return the means of squares, (n, planes * side^2); all pixels as they are."""
        each = self.side // side
        squares = pixels.reshape(len(pixels), -1, side, each, side, each)
        return np.asarray(squares.mean(axis=(3, 5)).reshape(len(pixels), -1))

    def features(self, side: int) -> list[dict[str, Any]]:
        """Return name, unit and public bounds of every value, row by row."""
        return [
            Feature(name, plane, self.lower, self.upper, self.why).to_json()
            for plane in self.planes
            for name in self._places(plane, side)
        ]

    def _places(self, plane: str, side: int) -> Iterator[str]:
        colour = "" if len(self.planes) == 1 else f"{plane}, "
        for row in range(side):
            for column in range(side):
                yield f"{colour}row {row + 1}, column {column + 1}"

    def _titled(self, classes: Classes) -> str:
        if len(classes) == len(self.known):
            return self.title
        if len(classes) == 2:
            return f"{self.title}: {classes[1]} against {classes[0]}"
        return f"{self.title}: {', '.join(classes)}"

    def _chosen(
        self, parameters: ImageParameters, paths: Paths
    ) -> tuple[Images, NDArray[np.int64]]:
        """Return the images of the chosen classes, and which are the test part's."""
        named = PARTS[parameters.part]
        parts = [self.read(parameters, part, paths) for part in named]
        found = np.concatenate([part.labels for part in parts])
        tested = np.repeat([name == "test" for name in named], [*map(_n, parts)])
        place = np.full(len(self.known), -1)
        place[[*parameters.places]] = range(len(parameters.places))
        labels = place[found]
        rows = labels >= 0
        images = Images(
            np.concatenate([part.pixels for part in parts])[rows],
            labels[rows],
            np.concatenate([part.ids for part in parts])[rows],
        )
        return images, tested[rows].astype(np.int64)


def _n(images: Images) -> int:
    return len(images.labels)


def distinct(pixels: NDArray[Any], labels: NDArray[np.int64]) -> int:
    """Return how many pairs of image and label differ from each other."""
    rows = np.column_stack([pixels, labels.astype(pixels.dtype)])
    return len(np.unique(rows.view(f"V{rows.shape[1] * rows.itemsize}")))
