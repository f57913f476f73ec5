"""Fashion-MNIST: clothes and shoes, 28 x 28 pixels with grey values from 0 to 255.

Source: Xiao, Rasul, Vollgraf (2017), Fashion-MNIST: a novel image dataset for
benchmarking machine learning algorithms, arXiv 1708.07747.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from curvote.data import raw_files
from curvote.data.columns import DISTINCT_CLASSES, Paths, all_classes
from curvote.data.public import images
from curvote.data.public.images import IDX_SIDE, Edition, ImageParameters, Images, Part
from curvote.data.public.images import check_idx as check

__all__ = ["Parameters", "check", "classes", "clients", "facts", "files", "size"]

SIMULATED = False
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


class Parameters(ImageParameters):
    """Settings of ``source:``: which clothes, and which part."""

    name: Literal["fashion-mnist"] = "fashion-mnist"
    classes: Annotated[tuple[Clothes, ...], all_classes(CLOTHES), DISTINCT_CLASSES] = (
        CLOTHES
    )

    @property
    def places(self) -> tuple[int, ...]:
        """Return the publisher's numbers of the clothes, in the pipeline's order."""
        return tuple(CLOTHES.index(name) for name in self.classes)


def _file_names(_: Parameters, part: Part) -> tuple[str, str]:
    return f"fashion-{part}-images", f"fashion-{part}-labels"


def _class_counts(parameters: Parameters, part: Part) -> Mapping[str, int]:
    return raw_files.find(_file_names(parameters, part)[1]).counts


def _read_part(parameters: Parameters, part: Part, paths: Paths) -> Images:
    return images.read_part(_file_names(parameters, part), part, paths)


EDITION = Edition(
    title="Fashion-MNIST clothes",
    class_names=CLOTHES,
    side=IDX_SIDE,
    lower=0,
    upper=255,
    why="one byte a pixel: 0 is background",
    names=_file_names,
    counts=_class_counts,
    read=_read_part,
)
files, size, width = EDITION.files, EDITION.size, EDITION.width
facts, clients, classes = EDITION.facts, EDITION.clients, EDITION.classes
