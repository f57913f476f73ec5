"""Networks as learners from codes, by the extra `neural`; absent, all else works."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["Neural"]

if TYPE_CHECKING:
    from curvote.systems.labels.neural.learner import Neural
else:
    __getattr__ = exports(
        __name__,
        {
            "Neural": "learner",
        },
    )
