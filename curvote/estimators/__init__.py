"""Scikit-learn classes: both sides of a protocol in memory, no orchestrator."""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = ["DirectClassifier", "MRMAClassifier"]

if TYPE_CHECKING:
    from curvote.estimators.direct import DirectClassifier
    from curvote.estimators.mrma import MRMAClassifier
else:
    __getattr__ = exports(
        __name__, {"DirectClassifier": "direct", "MRMAClassifier": "mrma"}
    )
