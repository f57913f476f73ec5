"""CIFAR-10: ten kinds of objects, 6,000 colour images of 32 x 32 pixels each."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from curvote.data.columns import DISTINCT_CLASSES, all_classes
from curvote.data.public.images import Archive, ImageParameters

SIMULATED = False
Thing = Literal[
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
THINGS: tuple[Thing, ...] = get_args(Thing)


class Parameters(ImageParameters):
    """Settings of ``source:``: which objects, and which part."""

    name: Literal["cifar-10"] = "cifar-10"
    classes: Annotated[tuple[Thing, ...], all_classes(THINGS), DISTINCT_CLASSES] = (
        THINGS
    )

    @property
    def places(self) -> tuple[int, ...]:
        """Return the publisher's numbers of the objects, in the given order."""
        return tuple(THINGS.index(name) for name in self.classes)


ARCHIVE = Archive(
    source="cifar-10",
    title="CIFAR-10 objects",
    names=THINGS,
    listed="batches.meta.txt",
    train=tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
    test=("test_batch.bin",),
    labels=1,
)
check, EDITION = ARCHIVE.check, ARCHIVE.edition()
files, size, width = EDITION.files, EDITION.size, EDITION.width
facts, clients, classes = EDITION.facts, EDITION.clients, EDITION.classes
