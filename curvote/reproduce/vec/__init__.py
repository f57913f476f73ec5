"""The wing of VEC: Zhao et al., label LDP by vectors, and what goes beyond it."""

from curvote.lazy import exports

__getattr__ = exports(
    __name__,
    {
        "REPRODUCTIONS": "names",
        "compare": "shown",
        "laid_out": "shown",
        "agreement": "shown",
    },
)
