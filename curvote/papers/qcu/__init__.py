"""QCU: reproduction of Zheng & Hu, how often a classifier's answer survives noise."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["REPRODUCTIONS", "agreement", "compare", "laid_out"]

if TYPE_CHECKING:
    from curvote.papers.qcu.entries import REPRODUCTIONS, agreement, compare, laid_out
else:
    __getattr__ = exports(
        __name__,
        {
            "REPRODUCTIONS": "entries",
            "agreement": "entries",
            "compare": "entries",
            "laid_out": "entries",
        },
    )
