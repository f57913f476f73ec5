"""The learners by name; adding one is a class in a module and a line here."""

from curvote.base.registry import Registry

_PLACES = {
    "auto": "curvote.systems.labels.learners.auto:Auto",
    "knn": "curvote.systems.labels.learners.knn:KNN",
    "spectral": "curvote.systems.labels.learners.spectral:SpectralVotes",
    "ridge": "curvote.systems.labels.learners.knn:RidgeVotes",
    "likelihood": "curvote.systems.labels.learners.spectral:LikelihoodVotes",
    "forest": "curvote.systems.labels.learners.forest:Forest",
    "neural": "curvote.systems.labels.neural.learner:Neural",
}
LEARNERS = Registry("estimator", _PLACES, "curvote.label_learners")
