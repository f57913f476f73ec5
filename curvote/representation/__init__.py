"""Public encodings of curves: bases, projections, rescaling and encoding."""

from curvote.lazy import exports

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
        "volunteer_constants": "rescale",
    },
)
