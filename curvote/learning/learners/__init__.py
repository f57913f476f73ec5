"""Learners of linear classifiers, each fitted to a batch of problems at once."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["check", "fit", "names", "parameters"]

if TYPE_CHECKING:
    from curvote.learning.learners.registry import check, fit, names, parameters
else:
    __getattr__ = exports(
        __name__,
        {
            "check": "registry",
            "fit": "registry",
            "names": "registry",
            "parameters": "registry",
        },
    )
