"""Classifiers from data that reaches the server only through noise its owner added."""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = [
    "Budget",
    "Codes",
    "CurveClassifier",
    "DirectClassifier",
    "InternalError",
    "MRMAClassifier",
    "PrivateLabelClassifier",
    "PrivateLabelRegressor",
    "PrivateSearchCV",
    "Run",
    "SeededEntropy",
    "Spectral",
    "SystemEntropy",
    "Task",
    "TransferKernelClassifier",
    "UserError",
    "__version__",
    "encode",
    "load_run",
    "private_score",
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
    from curvote.labels import (
        Codes,
        PrivateLabelClassifier,
        PrivateLabelRegressor,
        PrivateSearchCV,
        Spectral,
        encode,
        private_score,
    )
    from curvote.privacy import Budget
    from curvote.run.loaded import Run, load_run
    from curvote.task import Task
    from curvote.version import __version__
else:
    __getattr__ = exports(
        __name__,
        {
            "Budget": "privacy",
            "Codes": "labels",
            "CurveClassifier": "curve_classifier",
            "DirectClassifier": "estimators",
            "InternalError": "errors",
            "MRMAClassifier": "estimators",
            "PrivateLabelClassifier": "labels",
            "PrivateLabelRegressor": "labels",
            "PrivateSearchCV": "labels",
            "Run": "run.loaded",
            "SeededEntropy": "entropy",
            "Spectral": "labels",
            "SystemEntropy": "entropy",
            "Task": "task",
            "TransferKernelClassifier": "estimators",
            "UserError": "errors",
            "__version__": "version",
            "encode": "labels",
            "load_run": "run.loaded",
            "private_score": "labels",
        },
    )
