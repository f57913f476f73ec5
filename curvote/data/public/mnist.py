"""MNIST: handwritten digits of 28 x 28 pixels with grey values from 0 to 255.

Source: LeCun, Bottou, Bengio, Haffner (1998), Gradient-based learning applied to
document recognition, Proc. IEEE 86(11), 2278-2324.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from curvote.data import raw_files
from curvote.data.columns import Paths
from curvote.data.public import images as idx
from curvote.data.public.images import (
    DIGITS,
    IDX_FIRST_TEST_ID,
    IDX_SIDE,
    PARTS,
    DigitParameters,
    Edition,
    Images,
    Part,
)
from curvote.data.public.images import check_idx as check
from curvote.data.raw_files import read

__all__ = ["Parameters", "check", "classes", "clients", "facts", "files", "size"]

SIMULATED = False
ALL = "mnist-60000-images"
# Digits 0 to 9 among the first 10,000 training labels.
_FIRST = (1001, 1127, 991, 1032, 980, 863, 1014, 1070, 944, 978)
FIRST_10000 = {str(digit): n for digit, n in enumerate(_FIRST)}
DERIVED = (
    "The training images are a copy of the publisher's first 10,000 that was put back"
    " in order by their labels; the order within a digit is assumed."
)


class Parameters(DigitParameters):
    """Settings of ``source:``: which digits, and which part.

    With ``split: published`` the training part is the publisher's 60,000 images where
    their file is here, else the copy of the first 10,000.
    """

    name: Literal["mnist"] = "mnist"


def _file_names(parameters: Parameters, part: Part) -> tuple[str, str]:
    full_training = parameters.split and part == "train"
    return ALL if full_training else f"mnist-{part}-images", f"mnist-{part}-labels"


def _class_counts(parameters: Parameters, part: Part) -> Mapping[str, int] | None:
    """Return the class counts of all training images or the first 10,000.

    Which of the two it has with ``split`` is known only where the files are.
    """
    images_file, labels_file = map(raw_files.find, _file_names(parameters, part))
    if images_file.stand_in:
        return None
    if images_file.rows == sum(_FIRST) and part == "train":
        return FIRST_10000
    return labels_file.counts if images_file.rows == labels_file.rows else None


def _read_part(parameters: Parameters, part: Part, paths: Paths) -> Images:
    return idx.read_part(_file_names(parameters, part), part, paths)


def _notes(parameters: Parameters, paths: Paths) -> list[str]:
    if "train" not in PARTS[parameters.part]:
        return []
    images = idx.parse_images(read(paths[_file_names(parameters, "train")[0]]))
    return [DERIVED] * (len(images) < IDX_FIRST_TEST_ID)


EDITION = Edition(
    title="MNIST digits",
    class_names=DIGITS,
    side=IDX_SIDE,
    lower=0,
    upper=255,
    why="one byte a pixel: 0 is background, 255 is ink",
    names=_file_names,
    counts=_class_counts,
    read=_read_part,
    notes=_notes,
)
files, size, width = EDITION.files, EDITION.size, EDITION.width
facts, clients, classes = EDITION.facts, EDITION.clients, EDITION.classes
