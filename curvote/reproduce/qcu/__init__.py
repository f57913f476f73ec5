"""QCU: reproduction of Zheng & Hu, how often a classifier's answer survives noise."""

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
