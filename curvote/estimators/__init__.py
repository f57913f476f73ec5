"""Scikit-learn classes: both sides of a protocol in memory, no orchestrator."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["DirectClassifier", "MRMAClassifier", "TransferKernelClassifier"]

if TYPE_CHECKING:
    from curvote.estimators.direct import DirectClassifier, MRMAClassifier
    from curvote.estimators.transfer import TransferKernelClassifier
else:
    __getattr__ = exports(
        __name__,
        {
            "DirectClassifier": "direct",
            "MRMAClassifier": "direct",
            "TransferKernelClassifier": "transfer",
        },
    )
