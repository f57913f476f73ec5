"""Former names of classes that saved models hold, and of what pages told to import.

A saved model names its classes by module and name. Whatever was written under a name of
this table is found where it stands today, under the name after the colon where it has
another.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

FORMER_NAMES: Mapping[str, Mapping[str, str]] = {
    "curvote.accounting": {
        "Losses": "curvote.base.accounting",
        "together": "curvote.base.accounting:compose_releases",
        "pure": "curvote.base.accounting:pure_dp_losses",
        "randomized_response": "curvote.base.accounting:randomized_response_losses",
        "laplace": "curvote.base.accounting:laplace_losses",
        "gaussian": "curvote.base.accounting:gaussian_losses",
        "shuffled": "curvote.base.accounting:shuffled_epsilon",
    },
    "curvote.classes": {
        "Classes": "curvote.base.classes",
    },
    "curvote.classifier": {
        "Linear": "curvote.curves.encoding",
    },
    "curvote.curve_classifier": {
        "CurveClassifier": "curvote.curves.curve_classifier",
    },
    "curvote.datasets.own.raw_records": {
        "RawRecords": "curvote.data.tables.records",
    },
    "curvote.entropy": {
        "Entropy": "curvote.base.entropy",
        "SeededEntropy": "curvote.base.entropy",
        "SystemEntropy": "curvote.base.entropy",
    },
    "curvote.errors": {
        "InternalError": "curvote.base.errors",
        "UserError": "curvote.base.errors",
    },
    "curvote.estimators.mrma": {
        "MRMAClassifier": "curvote.estimators.direct",
    },
    "curvote.federation.classifier": {
        "ServersClassifier": "curvote.systems.federated.model",
    },
    "curvote.labels.classifier": {
        "PrivateLabelClassifier": "curvote.systems.labels.method.classifier",
    },
    "curvote.labels.codes": {
        "Codes": "curvote.systems.labels.codes.codes",
    },
    "curvote.labels.learners.auto": {
        "Auto": "curvote.systems.labels.learners.auto",
    },
    "curvote.labels.learners.knn": {
        "KNN": "curvote.systems.labels.learners.knn",
    },
    "curvote.labels.learners.likelihood": {
        "LikelihoodVotes": "curvote.systems.labels.learners.spectral",
    },
    "curvote.labels.learners.ridge": {
        "RidgeVotes": "curvote.systems.labels.learners.knn",
    },
    "curvote.labels.learners.spectral": {
        "SpectralVotes": "curvote.systems.labels.learners.spectral",
    },
    "curvote.labels.neural.learner": {
        "Neural": "curvote.systems.labels.neural.learner",
    },
    "curvote.labels.regression.regressor": {
        "PrivateLabelRegressor": "curvote.systems.labels.regression.regressor",
    },
    "curvote.labels.regression.targets": {
        "NoisedTargets": "curvote.systems.labels.regression.targets",
    },
    "curvote.labels.score": {
        "Score": "curvote.systems.labels.codes.encoding",
    },
    "curvote.labels.search": {
        "PrivateSearchCV": "curvote.systems.labels.method.search",
    },
    "curvote.labels.spectral": {
        "Spectral": "curvote.systems.labels.learners.graph",
    },
    "curvote.privacy": {
        "Budget": "curvote.base.privacy",
    },
    "curvote.protocols.cells.kept": {
        "CellClassifier": "curvote.systems.cells.model",
    },
    "curvote.protocols.labels.kept": {
        "LabelClassifier": "curvote.systems.labels.method.classifier",
    },
    "curvote.protocols.majority.kept": {
        "ConstantClassifier": "curvote.systems.references.model",
    },
    "curvote.protocols.transfer.kept": {
        "TransferClassifier": "curvote.systems.transfer.model",
    },
    "curvote.protocols.utility.kept": {
        "RecordClassifier": "curvote.systems.utility.model",
    },
    "curvote.representation.basis": {
        "Projection": "curvote.curves.basis",
    },
    "curvote.representation.encoding": {
        "Encoding": "curvote.curves.encoding",
    },
    "curvote.systems.labels.model": {
        "LabelClassifier": "curvote.systems.labels.method.classifier",
    },
    "curvote.task": {
        "Task": "curvote.wire.task",
    },
    "curvote.transfer.decision": {
        "Decision": "curvote.systems.transfer.method.model",
    },
    "curvote.transfer.model": {
        "Model": "curvote.systems.transfer.method.model",
        "Standing": "curvote.systems.transfer.method.model:ServerSummary",
    },
    "curvote.transfer.releasing": {
        "Release": "curvote.systems.transfer.method.release",
    },
    "curvote.transfer.task": {
        "Feature": "curvote.systems.transfer.method.task",
        "Level": "curvote.systems.transfer.method.task",
        "Task": "curvote.systems.transfer.method.task",
    },
    "curvote.utility.engines.linear": {
        "LinearModel": "curvote.systems.utility.method.engines.discriminants",
    },
    "curvote.utility.projections": {
        "Rebuilt": "curvote.systems.utility.method.projections:AffineRebuild",
    },
}
_PACKAGES = {
    ".".join(parts[:end])
    for parts in (name.split(".") for name in FORMER_NAMES)
    for end in range(2, len(parts))
}


class FormerModules(MetaPathFinder, Loader):
    """Finder of modules that are no more, behind all others."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the spec of a former module; None for any other."""
        del path, target
        if fullname not in FORMER_NAMES and fullname not in _PACKAGES:
            return None
        return ModuleSpec(fullname, self, is_package=fullname in _PACKAGES)

    def exec_module(self, module: ModuleType) -> None:
        """Let a module give its former classes, each by its present name."""

        def find_class(name: str) -> Any:
            place = FORMER_NAMES.get(module.__name__, {}).get(name)
            if place is None:
                text = f"module {module.__name__!r} has no attribute {name!r}"
                raise AttributeError(text)
            present, _, present_name = place.partition(":")
            return getattr(import_module(present), present_name or name)

        vars(module)["__getattr__"] = find_class


def install() -> None:
    """Put the finder behind all others, once."""
    if not any(isinstance(finder, FormerModules) for finder in sys.meta_path):
        sys.meta_path.append(FormerModules())
