"""The idx format of MNIST and of what took its place: images and labels as bytes.

A big-endian header (a magic number, then the lengths), then one byte a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curvote.datasets import frames
from curvote.datasets.images import Images, Part
from curvote.datasets.sources import Source
from curvote.datasets.tables import tabular
from curvote.datasets.unpack import read
from curvote.errors import UserError

SIDE = 28
FIRST_TEST_ID = 60_000  # the publisher has so many training images
IMAGES, LABELS = 2051, 2049


def check(data: bytes, source: Source) -> None:
    """Raise a UserError unless ``data`` is the idx file that ``source`` describes."""
    if source.name.endswith("-images"):
        frames.check_rows(len(images(data)), source)
    else:
        tabular.check_counts(map(str, labels(data)), source)


def images(data: bytes) -> NDArray[np.uint8]:
    """Return the images (n, 784) in ``data``; UserError unless they are 28 x 28."""
    n, *shape = _header(data, IMAGES, 4)
    if shape != [SIDE, SIDE]:
        raise UserError(f"its images are {shape[0]} x {shape[1]}, not {SIDE} x {SIDE}.")
    return _body(data, 16, n * SIDE**2).reshape(n, SIDE**2)


def labels(data: bytes) -> NDArray[np.int64]:
    """Return the labels (n,) in ``data``; UserError if one is above 9."""
    (n,) = _header(data, LABELS, 2)
    found = _body(data, 8, n).astype(np.int64)
    if n and found.max() > 9:
        first = int(np.argmax(found > 9))
        raise UserError(f"label {first + 1} is {found[first]}, not a digit.")
    return found


def part_of(names: tuple[str, str], part: Part, paths: Mapping[str, Path]) -> Images:
    """Return one part from its files of images and of labels.

    Training may have fewer images than labels: the first ones. Other lengths that do
    not fit are a UserError.
    """
    pixels, found = images(read(paths[names[0]])), labels(read(paths[names[1]]))
    n = len(pixels)
    if n > len(found) or (part == "test" and n < len(found)):
        raise UserError(f"{n} {part} images do not fit {len(found)} labels.")
    first = FIRST_TEST_ID if part == "test" else 0
    return Images(pixels, found[:n], np.arange(first, first + n))


def _header(data: bytes, magic: int, length: int) -> list[int]:
    """Return the numbers after the magic number, of ``length`` big-endian words."""
    if len(data) < 4 * length:
        raise UserError(f"its {len(data)} bytes are too few for an idx header.")
    words: list[int] = np.frombuffer(data, dtype=">u4", count=length).tolist()
    found, *rest = words
    if found != magic:
        kinds = {IMAGES: "idx images", LABELS: "idx labels"}
        raise UserError(
            f"its magic number is {found} ({kinds.get(found, 'no idx file')}),"
            f" not {magic} ({kinds[magic]})."
        )
    return rest


def _body(data: bytes, start: int, wanted: int) -> NDArray[np.uint8]:
    given = len(data) - start
    if given != wanted:
        raise UserError(f"it has {given} bytes after its header instead of {wanted}.")
    return np.frombuffer(data, dtype=np.uint8, offset=start)
