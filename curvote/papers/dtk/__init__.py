"""DTK: reproduction of Auddy, Cai & Chakraborty, transfer between servers."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["REPRODUCTIONS", "agreement", "compare", "laid_out"]

if TYPE_CHECKING:
    from curvote.papers.dtk.comparison import agreement, compare, laid_out
    from curvote.papers.dtk.entries import REPRODUCTIONS
else:
    __getattr__ = exports(
        __name__,
        {
            "REPRODUCTIONS": "entries",
            "agreement": "comparison",
            "compare": "comparison",
            "laid_out": "comparison",
        },
    )
