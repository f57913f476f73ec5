"""Files in the idx format: images and labels as bytes.

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

IDX_SIDE = 28
IDX_FIRST_TEST_ID = 60_000  # the publisher has so many training images
IMAGES, LABELS = 2051, 2049


def check_idx(data: bytes, source: Source) -> None:
    """Raise a UserError unless ``data`` is the idx file described by ``source``."""
    if source.name.endswith("-images"):
        frames.check_rows(len(parse_images(data)), source)
    else:
        tabular.check_counts(map(str, parse_labels(data)), source)


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


def read_part(names: tuple[str, str], part: Part, paths: Mapping[str, Path]) -> Images:
    """Return the images of one part from its image file and label file.

    Training may have fewer images than labels: the first ones. Other lengths that do
    not fit are a UserError.
    """
    pixels, classes = (
        parse_images(read(paths[names[0]])),
        parse_labels(read(paths[names[1]])),
    )
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
