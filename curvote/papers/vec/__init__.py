"""VEC: reproduction of Zhao et al., label LDP by vectors, and comparisons beyond it."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["REPRODUCTIONS", "agreement", "compare", "laid_out"]

if TYPE_CHECKING:
    from curvote.papers.vec.entries import REPRODUCTIONS, agreement, compare, laid_out
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
