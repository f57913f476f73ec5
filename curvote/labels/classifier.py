import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from curvote.labels.encoding import shares


class PrivateLabelClassifier(ClassifierMixin, BaseEstimator):
    def __init__(
        self,
        estimator="auto",
        epsilon=1.0,
        encoder="auto",
        classes=None,
        decide="accuracy",
        calibrate=True,
        random_state=None,
    ):
        self.estimator = estimator
        self.epsilon = epsilon
        self.encoder = encoder
        self.classes = classes
        self.decide = decide
        self.calibrate = calibrate
        self.random_state = random_state

    def fit(self, X, codes, unlabelled=None):
        self.classes_ = codes.classes
        self.learner_ = self.estimator.fit(
            X, codes, np.random.default_rng(0), unlabelled=unlabelled
        )
        self.share_, self.share_se_ = shares(codes)
        return self

    def predict_proba(self, X):
        v = np.clip(self.learner_.votes(X), 1e-9, None)
        return v / v.sum(1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.learner_.votes(X).argmax(1)]
