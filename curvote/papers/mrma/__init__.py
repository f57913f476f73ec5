"""MRMA: reproduction of Qin & Bai, JMLR 2026, and comparisons beyond it."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["REPRODUCTIONS", "agreement", "compare", "laid_out"]

if TYPE_CHECKING:
    from curvote.papers.mrma.comparison import REPRODUCTIONS
    from curvote.papers.mrma.reproduction import agreement, compare, laid_out
else:
    __getattr__ = exports(
        __name__,
        {
            "REPRODUCTIONS": "comparison",
            "agreement": "reproduction",
            "compare": "reproduction",
            "laid_out": "reproduction",
        },
    )
