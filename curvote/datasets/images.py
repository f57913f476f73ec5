"""Published image collections: classes, parts, and the idx and CIFAR file formats.

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
    """Settings of ``source:``: which part, and whether its split holds.

    With ``split: published`` who tests is drawn from the publisher's test part, and
    everybody else from its training part. ``side`` makes images smaller, by the means
    of equal squares: it divides the publisher's.
    """

    part: Literal["train", "test", "both"] = "both"
    split: Split | None = None
    side: Whole | None = None

    @field_validator("split")
    @classmethod
    def _check_split(cls, split: Split | None, info: ValidationInfo) -> Split | None:
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
    """An image collection: its classes, pixels and bounds, and part reader.

    ``class_names`` names the classes by the publisher's numbers. ``names`` says which
    raw files a part has, ``counts`` how often each number is in it by the published
    counts, None if that is unknown. ``side`` is the images' height and width,
    ``planes`` are their colours, one after the other, ``notes`` what a report must
    state beside the unit of privacy.
    """

    title: str
    class_names: tuple[str, ...]
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
        return self._target_side(parameters) ** 2 * len(self.planes)

    def _target_side(self, parameters: ImageParameters) -> int:
        """Return the requested side; UserError for one that does not divide."""
        side = parameters.side or self.side
        if self.side % side:
            message = f"{side} does not divide {self.side}, the side of an image."
            raise UserError(message, where=("source", "side"))
        return side

    def classes(self, parameters: ImageParameters) -> Classes:
        """Return the names of the chosen classes."""
        return Classes(self.class_names[place] for place in parameters.places)

    def clients(
        self, parameters: ImageParameters, paths: Paths
    ) -> dict[str, NDArray[Any]]:
        """Return client_id, label, group (n,) and curve (n, p) of the chosen classes.

        An image's id is its place in the publisher's file, counted from 0; those of
        the test file go on after the publisher's images for training. With ``split``
        there is a column part, too: 1 for the publisher's test part.
        """
        images, tested = self._select_images(parameters, paths)
        return frames.client_columns(
            self._downscale(images.pixels, self._target_side(parameters)),
            images.labels,
            images.ids,
            part=tested if parameters.split else None,
        )

    def facts(self, parameters: ImageParameters, paths: Paths) -> dict[str, Any]:
        """Return the public metadata of the images as plain JSON values."""
        images, tested = self._select_images(parameters, paths)
        classes, n = self.classes(parameters), len(images.pixels)
        p, side = self.width(parameters), self._target_side(parameters)
        sizes = {"rows": n, "distinct": count_distinct(images.pixels, images.labels)}
        notes = self.notes(parameters, paths)
        return frames.facts(
            frames.class_counts(images.labels, classes),
            classes,
            title=self._class_title(classes),
            grid=list(range(p)),
            domain=[0, p - 1],
            unit="pixel",
            notes=["The unit of privacy is one image.", *notes],
            features=self.features(side),
            duplicates={"policy": "keep", **sizes},
            missing={"policy": "keep", "counts": {}},
            **frames.part_sizes(tested if parameters.split else None),
        )

    def _downscale(self, pixels: NDArray[Any], side: int) -> NDArray[np.float64]:
        """Return block means (n, planes * side^2), or the pixels unchanged."""
        block = self.side // side
        squares = pixels.reshape(len(pixels), -1, side, block, side, block)
        return np.asarray(squares.mean(axis=(3, 5)).reshape(len(pixels), -1))

    def features(self, side: int) -> list[dict[str, Any]]:
        """Return name, unit and public bounds of every value, row by row."""
        return [
            Feature(name, plane, self.lower, self.upper, self.why).to_json()
            for plane in self.planes
            for name in self._pixel_names(plane, side)
        ]

    def _pixel_names(self, plane: str, side: int) -> Iterator[str]:
        colour = "" if len(self.planes) == 1 else f"{plane}, "
        for row in range(side):
            for column in range(side):
                yield f"{colour}row {row + 1}, column {column + 1}"

    def _class_title(self, classes: Classes) -> str:
        if len(classes) == len(self.class_names):
            return self.title
        if len(classes) == 2:
            return f"{self.title}: {classes[1]} against {classes[0]}"
        return f"{self.title}: {', '.join(classes)}"

    def _select_images(
        self, parameters: ImageParameters, paths: Paths
    ) -> tuple[Images, NDArray[np.int64]]:
        """Return the images of the chosen classes, and which are the test part's."""
        named = PARTS[parameters.part]
        parts = [self.read(parameters, part, paths) for part in named]
        all_labels = np.concatenate([part.labels for part in parts])
        tested = np.repeat(
            [name == "test" for name in named], [*map(_image_count, parts)]
        )
        place = np.full(len(self.class_names), -1)
        place[[*parameters.places]] = range(len(parameters.places))
        labels = place[all_labels]
        rows = labels >= 0
        images = Images(
            np.concatenate([part.pixels for part in parts])[rows],
            labels[rows],
            np.concatenate([part.ids for part in parts])[rows],
        )
        return images, tested[rows].astype(np.int64)


def _image_count(images: Images) -> int:
    return len(images.labels)


def count_distinct(pixels: NDArray[Any], labels: NDArray[np.int64]) -> int:
    """Return the number of distinct pairs of image and label."""
    rows = np.column_stack([pixels, labels.astype(pixels.dtype)])
    return len(np.unique(rows.view(f"V{rows.shape[1] * rows.itemsize}")))
