"""Learners from public features and noised codes: what each makes of a record."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["Learner", "make"]

if TYPE_CHECKING:
    from curvote.systems.labels.learners.base import Learner
    from curvote.systems.labels.learners.factory import make
else:
    __getattr__ = exports(__name__, {"Learner": "base", "make": "factory"})
