"""Networks that learn from codes of images."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["Neural"]

if TYPE_CHECKING:
    from curvote.systems.labels.neural.learner import Neural
else:
    __getattr__ = exports(__name__, {"Neural": "curvote.systems.labels.neural.learner"})
