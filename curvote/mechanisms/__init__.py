"""Randomizers with a stated (epsilon, delta), one family a file, each with its law."""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = ["make", "names", "per_coordinate"]

if TYPE_CHECKING:
    from curvote.mechanisms.coordinates import per_coordinate
    from curvote.mechanisms.making import make, names
else:
    __getattr__ = exports(
        __name__,
        {
            "make": "making",
            "names": "making",
            "per_coordinate": "coordinates",
        },
    )
