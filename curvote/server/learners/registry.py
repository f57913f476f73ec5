"""The learners by name; adding one is one file and one line here."""

LEARNERS = {
    "logistic": "curvote.server.learners.logistic",
    "centroid": "curvote.server.learners.centroid",
    "cg": "curvote.server.learners.cg",
    "svm": "curvote.server.learners.svm",
    "svm_squared": "curvote.server.learners.svm_squared",
    "dwd": "curvote.server.learners.dwd",
    "lda": "curvote.server.learners.lda",
    "sklearn": "curvote.server.learners.scikit",
}
# These are families: a path after a colon says which learner is meant.
FAMILIES = {"sklearn": "linear_model.RidgeClassifier"}
