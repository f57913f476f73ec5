"""Private labels of records whose features are public: one noised code of each label.

codes = encode(y, epsilon=1.0)
model = PrivateLabelClassifier().fit(X, codes)
score = private_score(model, X_other, codes_other)
"""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = [
    "Codes",
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
    from curvote.labels.classifier import PrivateLabelClassifier
    from curvote.labels.codes import Codes
    from curvote.labels.encoding import encode
    from curvote.labels.regression import (
        NoisedTargets,
        PrivateLabelRegressor,
        noise_targets,
    )
    from curvote.labels.score import Score
    from curvote.labels.scoring import private_score
    from curvote.labels.search import PrivateSearchCV
    from curvote.labels.spectral import Spectral
else:
    __getattr__ = exports(
        __name__,
        {
            "Codes": "codes",
            "PrivateLabelClassifier": "classifier",
            "NoisedTargets": "regression",
            "PrivateLabelRegressor": "regression",
            "PrivateSearchCV": "search",
            "Score": "score",
            "Spectral": "spectral",
            "encode": "encoding",
            "noise_targets": "regression",
            "private_score": "scoring",
        },
    )
