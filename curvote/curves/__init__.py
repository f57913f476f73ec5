"""Public encodings of curves: bases, projections, rescaling and encoding."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = [
    "BASES",
    "Encoded",
    "Encoding",
    "Projection",
    "identity",
    "orthonormal",
    "projection",
    "volunteer_constants",
]

if TYPE_CHECKING:
    from curvote.curves.basis import (
        BASES,
        Projection,
        identity,
        orthonormal,
        projection,
    )
    from curvote.curves.encoding import Encoded, Encoding, volunteer_constants
else:
    __getattr__ = exports(
        __name__,
        {
            "BASES": "basis",
            "Encoded": "encoding",
            "Encoding": "encoding",
            "Projection": "basis",
            "identity": "basis",
            "orthonormal": "basis",
            "projection": "basis",
            "volunteer_constants": "encoding",
        },
    )
