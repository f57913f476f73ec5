"""Published image collections: classes and parts of MNIST, Fashion-MNIST, zip codes.

An image is a vector of grey or colour values with public bounds. The unit of privacy is
one image. MNIST has handwritten digits: LeCun, Bottou, Bengio, Haffner (1998),
Gradient-based learning applied to document recognition, Proc. IEEE 86(11), 2278-2324.
Fashion-MNIST has clothes and shoes: Xiao, Rasul, Vollgraf (2017), Fashion-MNIST: a
novel image dataset for benchmarking machine learning algorithms, arXiv 1708.07747. The
zip-code digits of *The Elements of Statistical Learning* were scanned by the US Postal
Service (Le Cun et al. 1990, NIPS 2).
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from itertools import product
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.base.table_file import MAX_LISTED
from curvote.chain.settings import Strict, WholeNumber
from curvote.data import columns, raw_files, reader
from curvote.data.columns import ClientColumns, Paths
from curvote.data.raw_files import Source, read

Part = Literal["train", "test"]
PARTS: dict[str, tuple[Part, ...]] = {
    "train": ("train",),
    "test": ("test",),
    "both": ("train", "test"),
}


class ImageParameters(Strict):
    """Settings of ``source:``: which part, and whether its split holds."""

    part: Literal["train", "test", "both"] = "both"
    split: columns.Split | None = None
    side: WholeNumber | None = None

    @field_validator("split")
    @classmethod
    def _check_split(
        cls, split: columns.Split | None, info: ValidationInfo
    ) -> columns.Split | None:
        if split and info.data.get("part") != "both":
            raise PydanticCustomError("part", "it needs both parts: leave part out")
        return split


Labels = NDArray[np.int64]
Images = tuple[NDArray[Any], Labels]  # pixels (n, p), the publisher's numbers (n,)


class ImageSet:
    """An image collection: its classes, pixels and bounds, and part reader.

    ``class_names`` names the classes by the publisher's numbers. ``side`` is the
    images' height and width, ``planes`` are their colours, one after the other. The
    publisher has ``trained`` images for training.
    """

    SIMULATED = False
    Parameters: type[ImageParameters]
    title: str
    class_names: tuple[str, ...]
    side: int
    lower: float
    upper: float
    why: str
    trained: int
    planes: tuple[str, ...] = ("grey",)

    def names(self, parameters: Any, part: Part) -> tuple[str, ...]:
        """Return the names of the raw files that a part has."""
        raise NotImplementedError

    def counts(self, parameters: Any, part: Part) -> Mapping[str, int] | None:
        """Return how often each number is in a part as published; None: unknown."""
        return raw_files.find(self.names(parameters, part)[-1]).counts

    def read(self, parameters: Any, part: Part, paths: Paths) -> Images:
        """Return the images of one part and their numbers."""
        raise NotImplementedError

    def notes(self, parameters: Any, paths: Paths) -> list[str]:
        """Return what a report must state beside the unit of privacy."""
        return []

    def places(self, parameters: Any) -> tuple[int, ...]:
        """Return the publisher's numbers of the classes, in the pipeline's order."""
        chosen = parameters.classes or (parameters.negative, parameters.positive)
        return tuple(self.class_names.index(str(name)) for name in chosen)

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
        chosen = [str(place) for place in self.places(parameters)]
        return sum(count[place] for count in counts if count for place in chosen)

    def width(self, parameters: ImageParameters) -> int:
        """Return how many values an image has by the published layout."""
        return self._target_side(parameters) ** 2 * len(self.planes)

    def _target_side(self, parameters: ImageParameters) -> int:
        side = parameters.side or self.side
        if self.side % side:
            message = f"{side} does not divide {self.side}, the side of an image."
            raise UserError(message, where=("source", "side"))
        return side

    def classes(self, parameters: ImageParameters) -> Classes:
        """Return the names of the chosen classes."""
        return Classes(self.class_names[place] for place in self.places(parameters))

    def clients(self, parameters: ImageParameters, paths: Paths) -> ClientColumns:
        """Return client_id, label, group (n,) and curve (n, p) of the chosen classes.

        An image's id is its place in the publisher's file, counted from 0; those of
        the test file go on after the publisher's images for training. With ``split``
        there is a column part, too: 1 for the publisher's test part.
        """
        pixels, labels, ids, tested = self._select_images(parameters, paths)
        side = self._target_side(parameters)
        block, n = self.side // side, len(pixels)
        squares = pixels.reshape(n, -1, side, block, side, block)
        return columns.client_columns(
            np.asarray(squares.mean(axis=(3, 5)).reshape(n, -1)),
            labels,
            ids,
            part=tested if parameters.split else None,
        )

    def facts(self, parameters: ImageParameters, paths: Paths) -> dict[str, Any]:
        """Return the public metadata of the images as plain JSON values."""
        pixels, labels, _, tested = self._select_images(parameters, paths)
        classes, p = self.classes(parameters), self.width(parameters)
        rows = np.column_stack([pixels, labels.astype(pixels.dtype)])
        row_keys = rows.view(f"V{rows.shape[1] * rows.itemsize}")
        sizes = {"rows": len(rows), "distinct": len(np.unique(row_keys))}
        notes = self.notes(parameters, paths)
        chosen = f": {', '.join(classes)}"
        if len(classes) == len(self.class_names):
            chosen = ""
        elif len(classes) == 2:
            chosen = f": {classes[1]} against {classes[0]}"
        return columns.facts(
            columns.class_counts(labels, classes),
            classes,
            title=f"{self.title}{chosen}",
            grid=list(range(p)),
            domain=[0, p - 1],
            unit="pixel",
            notes=["The unit of privacy is one image.", *notes],
            features=self.features(self._target_side(parameters)),
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
            features.append(
                columns.Feature(name, plane, self.lower, self.upper, self.why)
            )
        return [feature.to_json() for feature in features]

    def _select_images(
        self, parameters: ImageParameters, paths: Paths
    ) -> tuple[NDArray[Any], Labels, Labels, Labels]:
        """Return pixels, labels, ids of the chosen classes, and who is of the test."""
        place = np.full(len(self.class_names), -1)
        places = self.places(parameters)
        place[[*places]] = range(len(places))
        chosen = []
        for part in PARTS[parameters.part]:
            pixels, numbers = self.read(parameters, part, paths)
            labels, test = place[numbers], int(part == "test")
            rows = labels >= 0
            ids = np.arange(len(labels)) + test * self.trained
            tested = np.full(len(labels), test)
            chosen.append([x[rows] for x in (pixels, labels, ids, tested)])
        pixels, labels, ids, tested = map(np.concatenate, zip(*chosen, strict=True))
        return pixels, labels, ids, tested


Digit = Annotated[int, Field(ge=0, le=9, strict=True)]
DIGITS = tuple(map(str, range(10)))


class DigitParameters(ImageParameters):
    """Settings of ``source:``: which digits, and which part of the data."""

    negative: Digit = 3
    positive: Digit = 8
    classes: (
        Annotated[
            tuple[Digit, ...],
            columns.all_classes((*range(10),)),
            columns.DISTINCT_CLASSES,
        ]
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
        columns.check_one_way(self, "positive", "negative")
        return self


IDX_SIDE = 28
IMAGES, LABELS = 2051, 2049


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


ALL = "mnist-60000-images"
# Digits 0 to 9 among the first 10,000 training labels.
_FIRST = (1001, 1127, 991, 1032, 980, 863, 1014, 1070, 944, 978)
DERIVED = (
    "The training images are a copy of the publisher's first 10,000 that was put back"
    " in order by their labels; the order within a digit is assumed."
)


class MnistParameters(DigitParameters, title="Parameters"):
    """Settings of ``source:``: which digits, and which part.

    With ``split: published`` the training part is the publisher's 60,000 images where
    their file is here, else the copy of the first 10,000.
    """

    name: Literal["mnist"] = "mnist"


class _IdxSet(ImageSet):
    side, lower, upper, trained = IDX_SIDE, 0, 255, 60_000

    def read(self, parameters: Any, part: Part, paths: Paths) -> Images:
        """Return the images of one part from its image file and label file.

        Training may have fewer images than labels: the first ones. Other lengths that
        do not fit are a UserError.
        """
        images_file, labels_file = self.names(parameters, part)
        pixels = parse_images(read(paths[images_file]))
        labels = parse_labels(read(paths[labels_file]))
        n = len(pixels)
        if n > len(labels) or (part == "test" and n < len(labels)):
            raise UserError(f"{n} {part} images do not fit {len(labels)} labels.")
        return pixels, labels[:n]

    def check(self, data: bytes, source: Source) -> None:
        """Raise a UserError unless ``data`` is the idx file described by ``source``."""
        if source.name.endswith("-images"):
            columns.check_rows(len(parse_images(data)), source)
        else:
            reader.check_counts(map(str, parse_labels(data)), source)


class _Mnist(_IdxSet):
    Parameters = MnistParameters
    title, class_names = "MNIST digits", DIGITS
    why = "one byte a pixel: 0 is background, 255 is ink"

    def names(self, parameters: MnistParameters, part: Part) -> tuple[str, str]:
        full_training = parameters.split and part == "train"
        return ALL if full_training else f"mnist-{part}-images", f"mnist-{part}-labels"

    def counts(
        self, parameters: MnistParameters, part: Part
    ) -> Mapping[str, int] | None:
        """Return the class counts of all training images or the first 10,000.

        Which of the two it has with ``split`` is known only where the files are.
        """
        images_file, labels_file = map(raw_files.find, self.names(parameters, part))
        if images_file.stand_in:
            return None
        if images_file.rows == sum(_FIRST) and part == "train":
            return {str(digit): n for digit, n in enumerate(_FIRST)}
        return labels_file.counts if images_file.rows == labels_file.rows else None

    def notes(self, parameters: MnistParameters, paths: Paths) -> list[str]:
        if "train" not in PARTS[parameters.part]:
            return []
        images = parse_images(read(paths[self.names(parameters, "train")[0]]))
        return [DERIVED] * (len(images) < self.trained)


Clothes = Literal[
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
]
CLOTHES: tuple[Clothes, ...] = get_args(Clothes)


class FashionParameters(ImageParameters, title="Parameters"):
    """Settings of ``source:``: which clothes, and which part."""

    name: Literal["fashion-mnist"] = "fashion-mnist"
    classes: Annotated[
        tuple[Clothes, ...], columns.all_classes(CLOTHES), columns.DISTINCT_CLASSES
    ] = CLOTHES


class _FashionMnist(_IdxSet):
    Parameters = FashionParameters
    title, class_names = "Fashion-MNIST clothes", CLOTHES
    why = "one byte a pixel: 0 is background"

    def names(self, parameters: FashionParameters, part: Part) -> tuple[str, str]:
        return f"fashion-{part}-images", f"fashion-{part}-labels"


ZIP_SIDE = 16


class ZipParameters(DigitParameters, title="Parameters"):
    """Settings of ``source:``: which digits, and which part."""

    name: Literal["zip"] = "zip"


def parse_digits(data: bytes) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the grey values (n, 256) and labels (n,) in ``data``.

    A line has the label, written as 5.0000, and the values, separated by blanks.

    Raises:
        UserError: text, other lengths, a label that is no digit, a value beyond 1.
    """
    import pandas as pd

    try:
        frame = pd.read_csv(io.BytesIO(data), header=None, sep=r"\s+")
        table = frame.to_numpy(dtype=np.float64)
    except ValueError as error:  # pandas' parser errors and bad UTF-8 are ValueErrors
        raise UserError(f"it is no table of numbers: {error}") from error
    if table.shape[1] != ZIP_SIDE**2 + 1:
        raise UserError(
            f"its lines have {table.shape[1]} values, not {ZIP_SIDE**2 + 1}."
        )
    digits, pixels = table[:, 0], table[:, 1:]
    no_digit = ~np.isin(digits, np.arange(10))
    no_grey = ~(np.abs(pixels) <= 1).all(axis=1)  # also true where a value is NaN
    problems = [
        f"{what} in {len(lines)} lines: {', '.join(map(str, lines[:MAX_LISTED]))}"
        for what, lines in (
            ("label that is no digit", np.flatnonzero(no_digit) + 1),
            ("grey value missing or not in [-1, 1]", np.flatnonzero(no_grey) + 1),
        )
        if len(lines)
    ]
    if problems:
        raise UserError(f"{'; '.join(problems)}.")
    return pixels, digits.astype(np.int64)


class _Zip(ImageSet):
    Parameters = ZipParameters
    title, class_names = "Zip-code digits", DIGITS
    side, lower, upper, trained = ZIP_SIDE, -1, 1, 7291
    why = "the publisher scaled grey values to [-1, 1]"

    def names(self, parameters: ZipParameters, part: Part) -> tuple[str, ...]:
        return (f"zip-{part}",)

    def read(self, parameters: ZipParameters, part: Part, paths: Paths) -> Images:
        return parse_digits(read(paths[f"zip-{part}"]))

    def check(self, data: bytes, source: Source) -> None:
        """Raise a UserError unless ``data`` has the published form, rows, counts."""
        reader.check_counts(map(str, parse_digits(data)[1]), source)


MNIST = _Mnist()
FASHION_MNIST = _FashionMnist()
ZIP = _Zip()
