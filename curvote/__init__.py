"""Classifiers from data that reaches the server only through noise its owner added."""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = [
    "Budget",
    "CurveClassifier",
    "DirectClassifier",
    "InternalError",
    "MRMAClassifier",
    "PrivateLabelRegressor",
    "SeededEntropy",
    "SystemEntropy",
    "Task",
    "TransferKernelClassifier",
    "UserError",
]

if TYPE_CHECKING:
    from curvote.curve_classifier import CurveClassifier
    from curvote.entropy import SeededEntropy, SystemEntropy
    from curvote.errors import InternalError, UserError
    from curvote.estimators import (
        DirectClassifier,
        MRMAClassifier,
        TransferKernelClassifier,
    )
    from curvote.labels import PrivateLabelRegressor
    from curvote.privacy import Budget
    from curvote.task import Task
else:
    __getattr__ = exports(
        __name__,
        {
            "Budget": "privacy",
            "CurveClassifier": "curve_classifier",
            "DirectClassifier": "estimators",
            "InternalError": "errors",
            "MRMAClassifier": "estimators",
            "PrivateLabelRegressor": "labels",
            "SeededEntropy": "entropy",
            "SystemEntropy": "entropy",
            "Task": "task",
            "TransferKernelClassifier": "estimators",
            "UserError": "errors",
        },
    )
