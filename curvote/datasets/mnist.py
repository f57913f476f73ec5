"""MNIST: handwritten digits of 28 x 28 pixels with grey values from 0 to 255.

Source: LeCun, Bottou, Bengio, Haffner (1998), Gradient-based learning applied to
document recognition, Proc. IEEE 86(11), 2278-2324. Its files are in the idx format: a
big-endian header (a magic number, then the lengths), then bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from curvote.datasets import frames, sources
from curvote.datasets.digits import PARTS, DigitParameters, Digits, Edition, Part
from curvote.datasets.sources import Source
from curvote.datasets.tables import tabular
from curvote.datasets.unpack import read
from curvote.errors import UserError

SIMULATED = False
SIDE = 28
IMAGES, LABELS = 2051, 2049
FIRST_TEST_ID = 60_000  # the publisher has so many training images
# Digits 0 to 9 among the first 10,000 training labels.
_FIRST = (1001, 1127, 991, 1032, 980, 863, 1014, 1070, 944, 978)
FIRST_10000 = {str(digit): n for digit, n in enumerate(_FIRST)}
DERIVED = (
    "The training images are a copy of the publisher's first 10,000 that was put back"
    " in order by their labels; the order within a digit is assumed."
)


class Parameters(DigitParameters):
    """What ``source:`` of a pipeline may say: two digits, and train, test or both."""

    name: Literal["mnist"] = "mnist"


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


def _names(part: Part) -> tuple[str, str]:
    return f"mnist-{part}-images", f"mnist-{part}-labels"


def _counts(part: Part) -> Mapping[str, int] | None:
    """Return them if training has all images, or the first 10,000."""
    images_file, labels_file = map(sources.find, _names(part))
    if images_file.rows == sum(_FIRST) and part == "train":
        return FIRST_10000
    return labels_file.counts if images_file.rows == labels_file.rows else None


def _images(part: Part, paths: Mapping[str, Path]) -> NDArray[np.uint8]:
    return images(read(paths[_names(part)[0]]))


def _read(part: Part, paths: Mapping[str, Path]) -> Digits:
    """Return one part; training may have fewer images than labels: the first ones."""
    pixels, found = _images(part, paths), labels(read(paths[_names(part)[1]]))
    n = len(pixels)
    if n > len(found) or (part == "test" and n < len(found)):
        raise UserError(f"{n} {part} images do not fit {len(found)} labels.")
    first = FIRST_TEST_ID if part == "test" else 0
    return Digits(pixels, found[:n], np.arange(first, first + n))


def _notes(parameters: DigitParameters, paths: Mapping[str, Path]) -> list[str]:
    training = "train" in PARTS[parameters.part]
    return [DERIVED] * (training and len(_images("train", paths)) < FIRST_TEST_ID)


EDITION = Edition(
    title="MNIST digits",
    side=SIDE,
    lower=0,
    upper=255,
    why="one byte a pixel: 0 is background, 255 is ink",
    names=_names,
    counts=_counts,
    read=_read,
    notes=_notes,
)
files, size, width = EDITION.files, EDITION.size, EDITION.width
facts, clients = EDITION.facts, EDITION.clients
