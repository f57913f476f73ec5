"""VEC: reproduction of Zhao et al., label LDP by vectors, and comparisons beyond it."""

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
