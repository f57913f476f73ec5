"""Stages of `majority`, of `clean` and of `functional`."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.chain.stage import Rows, StageContext
from curvote.curves.encoding import predict_indices
from curvote.learning.learners.scikit import build_estimator
from curvote.learning.volunteers import class_scores
from curvote.learning.votes import draw_subsets
from curvote.messages.roles import EVERYBODY, roles_of_table
from curvote.systems.common import models, study
from curvote.systems.references.messages import Label, response_for

LABEL_MESSAGE: Final = Label()
privatize_metadata, privatize = study.draw_stage(LABEL_MESSAGE)


def elect_class(noised: NDArray[Any], n_classes: int) -> int:
    """Return the place of the class with most noised labels."""
    return int(response_for(n_classes).counts(noised).argmax())


def majority_error(context: StageContext, clients: study.StudyClients) -> float:
    """Return the share of test clients that the elected class gets wrong.

    The noise is that of stage privatize of `majority`: the same in every system.
    """
    kind, task = LABEL_MESSAGE, study.study_task(context, LABEL_MESSAGE)
    data = clients.data_of(kind.senders.rows(clients.roles))
    labels = study.draw_messages(context, kind, task, data, kind.stage)
    truth = clients.labels[clients.roles["test"]]
    return float(np.mean(truth != elect_class(labels["label"], len(task.classes))))


def aggregate(context: StageContext) -> Rows:
    """Return the table ``elected``: one row, the place of a class."""
    labels = context.rows("privatize", "labels")["label"]
    place = elect_class(labels, len(context.inputs["project"].metadata["classes"]))
    return {"elected": {"place": np.array([place]), "n": np.array([len(labels)])}}


def score(context: StageContext) -> Rows:
    """Return the table ``scores`` with the row ``majority``."""
    error = majority_error(context, study.study_clients(context))
    k = len(context.inputs["project"].metadata["classes"])
    rows = study.score_rows({"majority": error})
    return study.add_scores(rows, study.chance_scores(k))


# Linear ones whose two-class form is a learner of curvote's own.
SCIKIT_NAMES: Final = {
    "lda": "discriminant_analysis.LinearDiscriminantAnalysis",
    "logistic": "linear_model.LogisticRegression",
}
SCIKIT_PREFIX: Final = "sklearn:"


def make_estimator(name: str, params: Mapping[str, Any]) -> Any:
    """Return the unfitted estimator of a learner; refuse an unknown name."""
    if not name.startswith(SCIKIT_PREFIX):
        name = SCIKIT_PREFIX + SCIKIT_NAMES[validate.one_of(SCIKIT_NAMES, learner=name)]
    return build_estimator(name.removeprefix(SCIKIT_PREFIX), dict(params))


fit_metadata = models.train_metadata


def fit_batch(many: Sequence[StageContext]) -> Iterator[Rows]:
    """Yield the table ``fitted``: each learner on its own draw of training clients.

    Without ``train``, and of more than two classes, there is one, on everybody who
    would report; of these it has a row for each class.
    """
    project = many[0].inputs["project"].metadata
    if (n_classes := len(project["classes"])) > 2:
        learner = many[0].metadata
        model = make_estimator(learner["learner"], learner["params"])
        for context in many:
            clients = study.study_clients(context)
            rows = EVERYBODY.rows(clients.roles)
            z, labels = clients.z[rows], clients.labels[rows]
            line = class_scores(model, z, labels, n_classes)
            constants = {
                "learner": np.zeros(n_classes, dtype=np.int64),
                "flagged": np.zeros(n_classes, dtype=bool),
            }
            yield {"fitted": models.classifier_columns(line, len(rows)) | constants}
        return
    basis = {"gram": project["encoding"]["gram"], "roughness": project["roughness"]}
    problems: list[list[models.Problem]] = []
    for context in many:
        clients, params = study.study_clients(context), context.params
        samples = [EVERYBODY.rows(clients.roles)]
        if params["train.count"] is not None:
            training, rng = clients.roles["train"], context.generator("draw", "train")
            sizes = params["train.count"], params["train.size"]
            samples = [*training[draw_subsets(rng, len(training), *sizes)]]
        problems.append([(clients.z[rows], clients.signs[rows]) for rows in samples])
    for columns in models.fit_repetitions(problems, basis, many[0].metadata):
        yield {"fitted": {"learner": np.arange(len(columns["n"]))} | columns}


def score_clean(context: StageContext) -> Rows:
    """Return the table ``scores`` with the row ``clean``; of K > 2 classes more."""
    clients, fits = study.study_clients(context), context.rows("fit", "fitted")
    if len(context.inputs["project"].metadata["classes"]) > 2:
        features, truth = clients.features_and_places("rescaled", "test")
        places = models.predict_places(features, fits)
        return study.score_places(context, truth, {"clean": places})
    judge = context.params["project.judge"]
    test = study.TestClients(*clients.features_and_signs(judge, "test"))
    decisions = test.decisions(fits["coef"], fits["intercept"])
    rows = study.score_rows({"clean": float(test.error(decisions).mean())})
    truth, every = (
        clients.labels[clients.roles["test"]],
        np.ascontiguousarray(decisions.T),
    )
    more = [
        list(study.ranking_scores("clean", truth, predict_indices(d[:, None]), d))
        for d in every
    ]
    means = [
        ("clean", same[0][1], float(np.mean([value for *_, value in same])))
        for same in zip(*more, strict=True)
    ]
    return study.add_scores(rows, means)


NEIGHBORS: Final = 5


def score_functional(context: StageContext) -> Rows:
    """Return the table ``scores`` of scikit-fda's classifiers of raw curves.

    Their own defaults, nothing is tuned. Its maximum depth classifier cannot be fitted
    with this scikit-learn, so its depths are compared here; its logistic regression
    tells two classes apart, and has a penalty of 1 where they do not overlap.
    """
    from skfda import FDataGrid
    from skfda.exploratory.depth import ModifiedBandDepth
    from skfda.ml.classification import KNeighborsClassifier, LogisticRegression

    facts = context.inputs["project"].metadata
    if facts.get("features") or facts.get("channels"):
        what = "rows of a table" if facts.get("features") else "curves of several"
        message = "functional compares curves of one channel; these records are"
        raise UserError(f"{message} {what}.", where=("protocol",))
    rows = context.rows("ingest", "clients", ("curve", "label", "group", "part"))
    roles = roles_of_table(rows, context.params, context.number)

    def read_role(role_rows: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64]]:
        curves = FDataGrid(rows["curve"][role_rows], grid_points=facts["grid"])
        return curves, rows["label"][role_rows]

    curves, labels = read_role(EVERYBODY.rows(roles))
    tested, truth = read_role(roles["test"])
    present = np.unique(labels)
    neighbors = KNeighborsClassifier(n_neighbors=min(NEIGHBORS, len(labels)))
    fitted = [ModifiedBandDepth().fit(curves[labels == k]) for k in present]
    depths = np.array([depth.transform(tested) for depth in fitted])
    predictions = {
        "functional_depth": present[depths.argmax(axis=0)],
        "functional_knn": np.asarray(neighbors.fit(curves, labels).predict(tested)),
    }
    if len(facts["classes"]) == 2 == len(present):
        with warnings.catch_warnings():  # of scikit-learn, about how it is called
            warnings.simplefilter("ignore", FutureWarning)
            logistic = LogisticRegression(penalty="l2").fit(curves, labels)
        places = np.asarray(logistic.predict(tested))
        predictions = {"functional_logistic": places} | predictions
    return study.score_places(context, truth, predictions)
