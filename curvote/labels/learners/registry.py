"""The learners by name; adding one is a class in a module and a line here."""

LEARNERS = {
    "auto": "curvote.labels.learners.auto:Auto",
    "knn": "curvote.labels.learners.knn:KNN",
    "spectral": "curvote.labels.learners.spectral:SpectralVotes",
    "ridge": "curvote.labels.learners.ridge:RidgeVotes",
    "likelihood": "curvote.labels.learners.likelihood:LikelihoodVotes",
    "neural": "curvote.labels.neural.learner:Neural",
}
