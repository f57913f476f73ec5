"""Arms of `direct`: the parts of a report, and the constant beside z."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.chain.stage import Metadata
from curvote.curves.direction import MEAN_SQUARE, Directions

# The part of a report's squared length that is the label moment's, by arm.
LABEL_SHARES = {"mean": 1.0, "joint": 0.8, "two": 0.8, "one_of": 0.8}
# Arms with other messages than one round of `PrivUnit`: protocols of their own.
ARM_PROTOCOLS = {"two": "direct_two", "one_of": "direct_one_of"}
# s is this times the length of a typical z: beside more numbers a constant must be
# larger to be seen. It has a sixth of u's energy then, little for slopes to lose.
INTERCEPT_FACTOR = 0.45
# A report with a second moment of more numbers would be over 20,000 long.
MAX_WIDTH = 198
# The part of the clients who report in the first of two rounds.
FIRST_ROUND_SHARE = 0.3
PUBLISHED_NAMES = ("intercept", "share", "square")


def make_directions(
    arm: str, d: int, rescale: str, intercept: float | str, n_classes: int = 2
) -> Directions:
    """Return how records become vectors; ``intercept`` may be "auto".

    Both constants were chosen on simulated data alone (docs/choosing.md). A second
    moment of more than ``MAX_WIDTH`` numbers is a UserError.
    """
    share = LABEL_SHARES[validate.one_of(LABEL_SHARES, arm=arm)]
    square = MEAN_SQUARE[rescale]
    check_moment_width(d, share)
    if isinstance(intercept, str):
        intercept = float(INTERCEPT_FACTOR * np.sqrt(d * square))
    return Directions(d, float(intercept), share, square, n_classes)


def protocol_of(method: str) -> str:
    """Return the protocol whose messages an arm sends; others have its name."""
    return ARM_PROTOCOLS.get(method, "direct" if method in LABEL_SHARES else method)


def check_moment_width(d: int, share: float) -> None:
    """Refuse a second moment of more than ``MAX_WIDTH`` numbers."""
    if share < 1 and d > MAX_WIDTH:
        raise UserError(
            f"a report of how {d} numbers go together is too long ({MAX_WIDTH} fit);"
            " write direct.arm: mean, or take fewer numbers."
        )


def directions_to_params(directions: Directions) -> dict[str, float]:
    """Return the parameters of vectors that a task publishes."""
    return {name: float(getattr(directions, name)) for name in PUBLISHED_NAMES}


def directions_from_params(
    d: int, params: Mapping[str, Any], n_classes: int = 2
) -> Directions:
    """Return the vectors that a task publishes; refuse missing constants."""
    missing = [name for name in PUBLISHED_NAMES if name not in params]
    if missing:
        raise UserError(f"the task states no {', '.join(missing)} of its vectors.")
    named = {name: params[name] for name in PUBLISHED_NAMES}
    return Directions(d, **named, n_classes=n_classes)


def decoding_metadata(metadata: Metadata) -> Metadata:
    """Return the metadata that decoding needs of a round of reports.

    Releases of earlier versions say nothing of their classes: they had two.
    """
    named = {name: metadata[name] for name in ("d", "epsilon", "params")}
    return named | {"n_classes": metadata.get("n_classes", 2)}


def directions_of(metadata: Metadata) -> Directions:
    """Return the vectors of a round from its metadata."""
    return directions_from_params(
        metadata["d"], metadata["params"], metadata["n_classes"]
    )
