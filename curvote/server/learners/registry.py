"""Registry of learners: functions by name, their parameters and shared checks."""

LEARNERS = {
    "logistic": "curvote.server.learners.logistic:fit_logistic",
    "centroid": "curvote.server.learners.centroid:fit_centroid",
    "cg": "curvote.server.learners.cg:fit_conjugate_gradients",
    "svm": "curvote.server.learners.svm:fit_svm",
    "svm_squared": "curvote.server.learners.svm_squared:fit_svm_squared",
    "dwd": "curvote.server.learners.dwd:fit_dwd",
    "lda": "curvote.server.learners.lda:fit_lda",
    "sklearn": "curvote.server.learners.scikit",
}
# These are families: a path after a colon says which learner is meant.
FAMILIES = {"sklearn": "linear_model.RidgeClassifier"}
