"""CIFAR-10 and CIFAR-100: colour images of 32 x 32 pixels, of ten or a hundred kinds.

CIFAR-10 has 6,000 images of each kind of objects, CIFAR-100 has 600. A record of
CIFAR-100 has two labels; the class is the fine one.
"""

import io
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from curvote.base.errors import UserError, did_you_mean
from curvote.data import columns, raw_files, reader
from curvote.data.columns import Paths
from curvote.data.public.images import ImageParameters, Images, ImageSet, Part
from curvote.data.raw_files import Source, read

SIDE = 32
PLANES = ("red", "green", "blue")
_BYTES = SIDE**2 * len(PLANES)
_SIXTHS = {"train": 5, "test": 1}  # of each class


class _Archive(ImageSet):
    """A CIFAR archive: the files of each part, and what a record begins with.

    ``listed`` is the file that names the classes, ``labels`` how many labels a record
    begins with, of which the last is the class.
    """

    side, planes = SIDE, PLANES
    lower, upper, why = 0, 255, "one byte a colour of a pixel"
    trained = 50_000
    source: str
    listed: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    labels: int

    def names(self, parameters: Any, part: Part) -> tuple[str, ...]:
        return (self.source,)

    def check(self, data: bytes, source: Source) -> None:
        """Raise a UserError unless names, rows and counts are those published."""
        files = _extract_files(data, (self.listed, *self.train, *self.test))
        listed_names = tuple(files[self.listed].decode("utf-8", "replace").split())
        if listed_names != self.class_names:
            raise UserError(
                f"{self.listed} names other classes: {', '.join(listed_names)}."
            )
        for part in _SIXTHS:
            names = self.train if part == "train" else self.test
            part_labels = [self._parse_records(files[x], x)[1] for x in names]
            labels = np.concatenate(part_labels)
            reader.check_counts(map(str, labels), _part_counts(source, part))

    def counts(self, parameters: Any, part: Part) -> Mapping[str, int]:
        return _part_counts(raw_files.find(self.source), part).counts

    def read(self, parameters: Any, part: Part, paths: Paths) -> Images:
        names = self.train if part == "train" else self.test
        files = _extract_files(read(paths[self.source]), names)
        parts = [self._parse_records(files[name], name) for name in names]
        pixels, labels = map(np.concatenate, zip(*parts, strict=True))
        return pixels, labels

    def _parse_records(self, data: bytes, name: str) -> Images:
        """Return pixels (n, 3072) and classes (n,) of one file of the archive."""
        size = self.labels + _BYTES
        if not data or len(data) % size:
            raise UserError(f"{name} has {len(data)} bytes, not a multiple of {size}.")
        rows = np.frombuffer(data, dtype=np.uint8).reshape(-1, size)
        labels = rows[:, self.labels - 1].astype(np.int64)
        if labels.max() >= len(self.class_names):
            first = int(np.argmax(labels >= len(self.class_names)))
            raise UserError(f"{name}: label {first + 1} is {labels[first]}, no class.")
        return rows[:, self.labels :], labels


def _part_counts(source: Source, part: str) -> Source:
    """Return the published counts of one part: 5 of 6 images train."""
    share = _SIXTHS[part]
    counts = {label: n * share // 6 for label, n in source.counts.items()}
    return replace(source, rows=source.rows * share // 6, counts=counts)


def _extract_files(data: bytes, names: tuple[str, ...]) -> dict[str, bytes]:
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


Object10 = Literal[
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
]
OBJECTS_10: tuple[Object10, ...] = get_args(Object10)


class Cifar10Parameters(ImageParameters, title="Parameters"):
    """Settings of ``source:``: which objects, and which part."""

    name: Literal["cifar-10"] = "cifar-10"
    classes: Annotated[
        tuple[Object10, ...], columns.all_classes(OBJECTS_10), columns.DISTINCT_CLASSES
    ] = OBJECTS_10


class _Cifar10(_Archive):
    Parameters = Cifar10Parameters
    title, class_names = "CIFAR-10 objects", OBJECTS_10
    source, listed = "cifar-10", "batches.meta.txt"
    train = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
    test, labels = ("test_batch.bin",), 1


OBJECTS_100: tuple[str, ...] = (
    *("apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle"),
    *("bicycle", "bottle", "bowl", "boy", "bridge", "bus", "butterfly", "camel"),
    *("can", "castle", "caterpillar", "cattle", "chair", "chimpanzee", "clock"),
    *("cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur"),
    *("dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster"),
    *("house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion"),
    *("lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse"),
    *("mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear"),
    *("pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine"),
    *("possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea"),
    *("seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake"),
    *("spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table"),
    *("tank", "telephone", "television", "tiger", "tractor", "train", "trout"),
    *("tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman"),
    "worm",
)


def _check_class(name: str) -> str:
    if name not in OBJECTS_100:
        message = f"{name!r} is no class.{did_you_mean(name, OBJECTS_100)}"
        raise PydanticCustomError("class", "{said}", {"said": message})
    return name


Object100 = Annotated[str, AfterValidator(_check_class)]


class Cifar100Parameters(ImageParameters, title="Parameters"):
    """Settings of ``source:``: which objects, and which part."""

    name: Literal["cifar-100"] = "cifar-100"
    classes: Annotated[
        tuple[Object100, ...],
        columns.all_classes(OBJECTS_100),
        columns.DISTINCT_CLASSES,
    ] = OBJECTS_100


class _Cifar100(_Archive):
    Parameters = Cifar100Parameters
    title, class_names = "CIFAR-100 objects", OBJECTS_100
    source, listed = "cifar-100", "fine_label_names.txt"
    train, test, labels = ("train.bin",), ("test.bin",), 2


CIFAR_10 = _Cifar10()
CIFAR_100 = _Cifar100()
