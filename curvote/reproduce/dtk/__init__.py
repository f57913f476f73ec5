"""DTK: reproduction of Auddy, Cai & Chakraborty, transfer between servers."""

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
