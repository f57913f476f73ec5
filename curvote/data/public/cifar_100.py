"""CIFAR-100: a hundred kinds of objects, 600 colour images of 32 x 32 pixels each.

A record has two labels; the class is the fine one.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from curvote.base.errors import did_you_mean
from curvote.data.columns import DISTINCT_CLASSES, all_classes
from curvote.data.public.images import Archive, ImageParameters

SIMULATED = False
THINGS: tuple[str, ...] = (
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
    if name not in THINGS:
        message = f"{name!r} is no class.{did_you_mean(name, THINGS)}"
        raise PydanticCustomError("class", "{said}", {"said": message})
    return name


Thing = Annotated[str, AfterValidator(_check_class)]


class Parameters(ImageParameters):
    """Settings of ``source:``: which objects, and which part."""

    name: Literal["cifar-100"] = "cifar-100"
    classes: Annotated[tuple[Thing, ...], all_classes(THINGS), DISTINCT_CLASSES] = (
        THINGS
    )

    @property
    def places(self) -> tuple[int, ...]:
        """Return the publisher's numbers of the objects, in the pipeline's order."""
        return tuple(THINGS.index(name) for name in self.classes)


ARCHIVE = Archive(
    source="cifar-100",
    title="CIFAR-100 objects",
    names=THINGS,
    listed="fine_label_names.txt",
    train=("train.bin",),
    test=("test.bin",),
    labels=2,
)
check, EDITION = ARCHIVE.check, ARCHIVE.edition()
files, size, width = EDITION.files, EDITION.size, EDITION.width
facts, clients, classes = EDITION.facts, EDITION.clients, EDITION.classes
