"""The learners by name; adding one is a class in a module and a line here."""

LEARNERS = {
    "knn": "curvote.labels.learners.knn:KNN",
}
