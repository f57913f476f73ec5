"""Classifiers from data that reaches the server only through noise its owner added."""

from typing import TYPE_CHECKING

from curvote.base.former_names import install
from curvote.base.lazy import exports

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
    "falsify",
    "load_run",
    "private_score",
]

if TYPE_CHECKING:
    from curvote.audit.falsification import falsify
    from curvote.base.entropy import SeededEntropy, SystemEntropy
    from curvote.base.errors import InternalError, UserError
    from curvote.base.privacy import Budget
    from curvote.base.version import __version__
    from curvote.curves.curve_classifier import CurveClassifier
    from curvote.estimators.direct import DirectClassifier, MRMAClassifier
    from curvote.estimators.transfer import TransferKernelClassifier
    from curvote.pipeline.run.run_object import Run, load_run
    from curvote.systems.labels.codes.codes import Codes
    from curvote.systems.labels.codes.encoding import encode
    from curvote.systems.labels.learners.graph import Spectral
    from curvote.systems.labels.method.classifier import PrivateLabelClassifier
    from curvote.systems.labels.method.scoring import private_score
    from curvote.systems.labels.method.search import PrivateSearchCV
    from curvote.systems.labels.regression.regressor import PrivateLabelRegressor
    from curvote.wire.task import Task
else:
    __getattr__ = exports(
        __name__,
        {
            "Budget": "base.privacy",
            "Codes": "systems.labels.codes.codes",
            "CurveClassifier": "curves.curve_classifier",
            "DirectClassifier": "estimators.direct",
            "InternalError": "base.errors",
            "MRMAClassifier": "estimators.direct",
            "PrivateLabelClassifier": "systems.labels.method.classifier",
            "PrivateLabelRegressor": "systems.labels.regression.regressor",
            "PrivateSearchCV": "systems.labels.method.search",
            "Run": "pipeline.run.run_object",
            "SeededEntropy": "base.entropy",
            "Spectral": "systems.labels.learners.graph",
            "SystemEntropy": "base.entropy",
            "Task": "wire.task",
            "TransferKernelClassifier": "estimators.transfer",
            "UserError": "base.errors",
            "__version__": "base.version",
            "encode": "systems.labels.codes.encoding",
            "falsify": "audit.falsification",
            "load_run": "pipeline.run.run_object",
            "private_score": "systems.labels.method.scoring",
        },
    )

install()  # for models that were saved under former names
