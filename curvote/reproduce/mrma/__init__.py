"""MRMA: reproduction of Qin & Bai, JMLR 2026, and comparisons beyond it."""

from curvote.lazy import exports

__getattr__ = exports(
    __name__,
    {
        "REPRODUCTIONS": "names",
        "compare": "write",
        "laid_out": "words",
        "agreement": "words",
    },
)
