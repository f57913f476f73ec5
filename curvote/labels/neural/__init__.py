"""Networks as learners from codes, by the extra `neural`; absent, all else works."""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = ["Neural"]

if TYPE_CHECKING:
    from curvote.labels.neural.learner import Neural
else:
    __getattr__ = exports(__name__, {"Neural": "learner"})
