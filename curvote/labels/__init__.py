"""Private labels of records whose features are public: one noised code of each label.

codes = encode(y, epsilon=1.0)
model = PrivateLabelClassifier().fit(X, codes)
score = private_score(model, X_other, codes_other)
"""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = [
    "Codes",
    "ImageFeatures",
    "NoisedTargets",
    "PrivateLabelClassifier",
    "PrivateLabelRegressor",
    "PrivateSearchCV",
    "Score",
    "Spectral",
    "encode",
    "noise_targets",
    "private_score",
]

if TYPE_CHECKING:
    from curvote.systems.labels.codes.codes import Codes
    from curvote.systems.labels.codes.encoding import Score, encode
    from curvote.systems.labels.learners.graph import Spectral
    from curvote.systems.labels.method.classifier import PrivateLabelClassifier
    from curvote.systems.labels.method.features import ImageFeatures
    from curvote.systems.labels.method.scoring import private_score
    from curvote.systems.labels.method.search import PrivateSearchCV
    from curvote.systems.labels.regression.regressor import PrivateLabelRegressor
    from curvote.systems.labels.regression.targets import NoisedTargets, noise_targets
else:
    __getattr__ = exports(
        __name__,
        {
            "Codes": "curvote.systems.labels.codes.codes",
            "ImageFeatures": "curvote.systems.labels.method.features",
            "NoisedTargets": "curvote.systems.labels.regression.targets",
            "PrivateLabelClassifier": "curvote.systems.labels.method.classifier",
            "PrivateLabelRegressor": "curvote.systems.labels.regression.regressor",
            "PrivateSearchCV": "curvote.systems.labels.method.search",
            "Score": "curvote.systems.labels.codes.encoding",
            "Spectral": "curvote.systems.labels.learners.graph",
            "encode": "curvote.systems.labels.codes.encoding",
            "noise_targets": "curvote.systems.labels.regression.targets",
            "private_score": "curvote.systems.labels.method.scoring",
        },
    )
