"""Randomizers with a stated (epsilon, delta), one family a file, each with its law."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["make", "names", "per_coordinate"]

if TYPE_CHECKING:
    from curvote.mechanisms.coordinates import per_coordinate
    from curvote.mechanisms.factory import make, names
else:
    __getattr__ = exports(
        __name__,
        {
            "make": "factory",
            "names": "factory",
            "per_coordinate": "coordinates",
        },
    )
