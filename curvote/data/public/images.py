"""Published image collections: classes, parts, and the idx and CIFAR file formats.

An image is a vector of grey or colour values with public bounds. The unit of privacy is
one image.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.chain.settings import Strict, WholeNumber
from curvote.data import columns, raw_files, reader
from curvote.data.columns import (
    DISTINCT_CLASSES,
    ClientColumns,
    Feature,
    Paths,
    Split,
    all_classes,
    check_one_way,
)
from curvote.data.raw_files import Source, read

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
    side: WholeNumber | None = None

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

    def clients(self, parameters: ImageParameters, paths: Paths) -> ClientColumns:
        """Return client_id, label, group (n,) and curve (n, p) of the chosen classes.

        An image's id is its place in the publisher's file, counted from 0; those of
        the test file go on after the publisher's images for training. With ``split``
        there is a column part, too: 1 for the publisher's test part.
        """
        images, tested = self._select_images(parameters, paths)
        side = self._target_side(parameters)
        block = self.side // side
        n = len(images.pixels)
        squares = images.pixels.reshape(n, -1, side, block, side, block)
        return columns.client_columns(
            np.asarray(squares.mean(axis=(3, 5)).reshape(n, -1)),
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
        chosen = f": {', '.join(classes)}"
        if len(classes) == len(self.class_names):
            chosen = ""
        elif len(classes) == 2:
            chosen = f": {classes[1]} against {classes[0]}"
        return columns.facts(
            columns.class_counts(images.labels, classes),
            classes,
            title=f"{self.title}{chosen}",
            grid=list(range(p)),
            domain=[0, p - 1],
            unit="pixel",
            notes=["The unit of privacy is one image.", *notes],
            features=self.features(side),
            duplicates={"policy": "keep", **sizes},
            missing={"policy": "keep", "counts": {}},
            **columns.part_sizes(tested if parameters.split else None),
        )

    def features(self, side: int) -> list[dict[str, Any]]:
        """Return name, unit and public bounds of every value, row by row."""
        features = []
        for plane, row, column in product(self.planes, range(side), range(side)):
            colour = "" if len(self.planes) == 1 else f"{plane}, "
            name = f"{colour}row {row + 1}, column {column + 1}"
            features.append(Feature(name, plane, self.lower, self.upper, self.why))
        return [feature.to_json() for feature in features]

    def _select_images(
        self, parameters: ImageParameters, paths: Paths
    ) -> tuple[Images, NDArray[np.int64]]:
        """Return the images of the chosen classes, and which are the test part's."""
        named = PARTS[parameters.part]
        parts = [self.read(parameters, part, paths) for part in named]
        all_labels = np.concatenate([part.labels for part in parts])
        sizes = [len(part.labels) for part in parts]
        tested = np.repeat([name == "test" for name in named], sizes)
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


def count_distinct(pixels: NDArray[Any], labels: NDArray[np.int64]) -> int:
    """Return the number of distinct pairs of image and label."""
    rows = np.column_stack([pixels, labels.astype(pixels.dtype)])
    return len(np.unique(rows.view(f"V{rows.shape[1] * rows.itemsize}")))


Digit = Annotated[int, Field(ge=0, le=9, strict=True)]
DIGITS = tuple(map(str, range(10)))


class DigitParameters(ImageParameters):
    """Settings of ``source:``: which digits, and which part of the data.

    ``classes`` is `all`, or lists two digits or more, instead of ``negative`` and
    ``positive``.
    """

    negative: Digit = 3
    positive: Digit = 8
    classes: (
        Annotated[tuple[Digit, ...], all_classes((*range(10),)), DISTINCT_CLASSES]
        | None
    ) = None

    @field_validator("positive")
    @classmethod
    def _check_two_digits(cls, positive: int, info: ValidationInfo) -> int:
        if positive == info.data.get("negative"):
            raise PydanticCustomError("same", "it must differ from negative")
        return positive

    @model_validator(mode="after")
    def _check_one_way(self) -> DigitParameters:
        check_one_way(self, "positive", "negative")
        return self

    @property
    def places(self) -> tuple[int, ...]:
        """Return the digits, in the pipeline's order."""
        return self.classes or (self.negative, self.positive)


IDX_SIDE = 28
IDX_FIRST_TEST_ID = 60_000  # the publisher has so many training images
IMAGES, LABELS = 2051, 2049


def check_idx(data: bytes, source: Source) -> None:
    """Raise a UserError unless ``data`` is the idx file described by ``source``."""
    if source.name.endswith("-images"):
        columns.check_rows(len(parse_images(data)), source)
    else:
        reader.check_counts(map(str, parse_labels(data)), source)


def parse_images(data: bytes) -> NDArray[np.uint8]:
    """Return the images (n, 784) in ``data``; UserError unless they are 28 x 28."""
    n, *shape = _parse_header(data, IMAGES, 4)
    if shape != [IDX_SIDE, IDX_SIDE]:
        raise UserError(
            f"its images are {shape[0]} x {shape[1]}, not {IDX_SIDE} x {IDX_SIDE}."
        )
    return _parse_body(data, 16, n * IDX_SIDE**2).reshape(n, IDX_SIDE**2)


def parse_labels(data: bytes) -> NDArray[np.int64]:
    """Return the labels (n,) in ``data``; UserError if one is above 9."""
    (n,) = _parse_header(data, LABELS, 2)
    values = _parse_body(data, 8, n).astype(np.int64)
    if n and values.max() > 9:
        first = int(np.argmax(values > 9))
        raise UserError(f"label {first + 1} is {values[first]}, not a digit.")
    return values


def read_part(names: tuple[str, str], part: Part, paths: Paths) -> Images:
    """Return the images of one part from its image file and label file.

    Training may have fewer images than labels: the first ones. Other lengths that do
    not fit are a UserError.
    """
    pixels = parse_images(read(paths[names[0]]))
    classes = parse_labels(read(paths[names[1]]))
    n = len(pixels)
    if n > len(classes) or (part == "test" and n < len(classes)):
        raise UserError(f"{n} {part} images do not fit {len(classes)} labels.")
    first = IDX_FIRST_TEST_ID if part == "test" else 0
    return Images(pixels, classes[:n], np.arange(first, first + n))


def _parse_header(data: bytes, magic: int, length: int) -> list[int]:
    """Return the numbers after the magic number, of ``length`` big-endian words."""
    if len(data) < 4 * length:
        raise UserError(f"its {len(data)} bytes are too few for an idx header.")
    words: list[int] = np.frombuffer(data, dtype=">u4", count=length).tolist()
    magic_found, *rest = words
    if magic_found != magic:
        kinds = {IMAGES: "idx images", LABELS: "idx labels"}
        raise UserError(
            f"its magic number is {magic_found}"
            f" ({kinds.get(magic_found, 'no idx file')}),"
            f" not {magic} ({kinds[magic]})."
        )
    return rest


def _parse_body(data: bytes, start: int, wanted: int) -> NDArray[np.uint8]:
    length = len(data) - start
    if length != wanted:
        raise UserError(f"it has {length} bytes after its header instead of {wanted}.")
    return np.frombuffer(data, dtype=np.uint8, offset=start)


SIDE = 32
PLANES = ("red", "green", "blue")
_BYTES = SIDE**2 * len(PLANES)
FIRST_TEST_ID = 50_000  # the publisher has so many training images
_SIXTHS = {"train": 5, "test": 1}  # of each class


@dataclass(frozen=True)
class Archive:
    """A CIFAR archive: its class ``names`` and the files of each part.

    ``listed`` is the file that names the classes, ``labels`` how many labels a record
    begins with, of which the last is the class.
    """

    source: str
    title: str
    names: tuple[str, ...]
    listed: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    labels: int

    def edition(self) -> Edition:
        """Return the collection of images that the archive is."""
        return Edition(
            title=self.title,
            class_names=self.names,
            side=SIDE,
            lower=0,
            upper=255,
            why="one byte a colour of a pixel",
            names=lambda *_: (self.source,),
            counts=self._class_counts,
            read=self._read_part,
            planes=PLANES,
        )

    def check(self, data: bytes, source: Source) -> None:
        """Raise a UserError unless names, rows and counts are those published."""
        files = _extract_files(data, (self.listed, *self.train, *self.test))
        listed_names = tuple(files[self.listed].decode("utf-8", "replace").split())
        if listed_names != self.names:
            raise UserError(
                f"{self.listed} names other classes: {', '.join(listed_names)}."
            )
        for part in _SIXTHS:
            names = self.train if part == "train" else self.test
            part_labels = [self._parse_records(files[x], x)[1] for x in names]
            labels = np.concatenate(part_labels)
            reader.check_counts(map(str, labels), _part_counts(source, part))

    def _class_counts(self, _parameters: Any, part: Part) -> Mapping[str, int]:
        return _part_counts(raw_files.find(self.source), part).counts

    def _read_part(self, _: Any, part: Part, paths: Paths) -> Images:
        names = self.train if part == "train" else self.test
        files = _extract_files(read(paths[self.source]), names)
        records = (self._parse_records(files[x], x) for x in names)
        pixels, labels = zip(*records, strict=True)
        first = FIRST_TEST_ID if part == "test" else 0
        classes = np.concatenate(labels)
        ids = np.arange(first, first + len(classes))
        return Images(np.concatenate(pixels), classes, ids)

    def _parse_records(
        self, data: bytes, name: str
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return pixels (n, 3072) and classes (n,) of one file of the archive."""
        size = self.labels + _BYTES
        if not data or len(data) % size:
            raise UserError(f"{name} has {len(data)} bytes, not a multiple of {size}.")
        rows = np.frombuffer(data, dtype=np.uint8).reshape(-1, size)
        labels = rows[:, self.labels - 1].astype(np.int64)
        if labels.max() >= len(self.names):
            first = int(np.argmax(labels >= len(self.names)))
            raise UserError(f"{name}: label {first + 1} is {labels[first]}, no class.")
        return rows[:, self.labels :], labels


def _part_counts(source: Source, part: str) -> Source:
    """Return the published counts of one part: 5 of 6 images train."""
    share = _SIXTHS[part]
    counts = {label: n * share // 6 for label, n in source.counts.items()}
    return replace(source, rows=source.rows * share // 6, counts=counts)


def _extract_files(data: bytes, names: tuple[str, ...]) -> dict[str, bytes]:
    """Return the contents of the files ``names`` of a tar archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            members = {
                Path(member.name).name: member for member in archive if member.isfile()
            }
            missing = sorted({*names} - {*members})
            if missing:
                raise UserError(f"it has no file {', '.join(missing)}.")
            streams = {name: archive.extractfile(members[name]) for name in names}
            return {name: s.read() for name, s in streams.items() if s is not None}
    except (tarfile.TarError, EOFError) as error:
        raise UserError(f"it is no whole tar archive: {error}.") from error
