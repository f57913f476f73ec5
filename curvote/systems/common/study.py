"""Simulated clients of a study: their roles, messages and scores."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.classes import class_signs
from curvote.chain.axis import PipelineSettings
from curvote.chain.measure import SCORES
from curvote.chain.stage import (
    TEXT,
    Columns,
    Inputs,
    Metadata,
    Params,
    Rows,
    StageContext,
    Table,
)
from curvote.curves.encoding import classifier_features, decision_sign
from curvote.data import lookup
from curvote.messages.measures import (
    AUC,
    BALANCED_ERROR,
    MISCLASSIFICATION,
    NONE_PASSED,
    RECALL,
)
from curvote.messages.message import Array, ClientData, Message, assign_candidates
from curvote.messages.roles import Roles, RowIndex, roles_of_table
from curvote.messages.stages import configured_task, study_metadata
from curvote.systems.common.tables import columns_of
from curvote.wire.task import AnyTask, Task

_ENCODED_COLUMNS = ("label", "group", "part", "coefficients", "z")


@dataclass(frozen=True)
class StudyClients:
    """Encoded clients of one replicate: coefficients, z, labels and roles.

    Labels are places of classes; ``class_signs`` says those of two as -1/+1. ``gram``
    (d, d) is the basis's, which everybody knows.
    """

    coefficients: Array
    z: Array
    labels: RowIndex
    roles: Roles
    gram: Array

    @property
    def signs(self) -> Array:
        """Labels of two classes as -1/+1; those of more are a UserError."""
        return class_signs(self.labels)

    def data_of(self, rows: RowIndex, candidate: RowIndex | None = None) -> ClientData:
        """Return the data of some clients, with the candidate of each."""
        arrays = self.coefficients[rows], self.z[rows], self.labels[rows]
        return ClientData(*arrays, candidate)

    def features_and_signs(self, feature_map: str, role: str) -> tuple[Array, Array]:
        """Return (features, labels -1/+1) of a role, to judge classifiers on."""
        features, places = self.features_and_places(feature_map, role)
        return features, class_signs(places)

    def features_and_places(
        self, feature_map: str, role: str
    ) -> tuple[Array, RowIndex]:
        """Return (features, labels as places) of a role."""
        rows = self.roles[role]
        arrays = self.coefficients[rows], self.z[rows]
        return classifier_features(feature_map, *arrays, self.gram), self.labels[rows]


def study_clients(context: StageContext) -> StudyClients:
    """Return the encoded clients of one repetition, with their roles."""
    rows = context.rows("project", "encoded", _ENCODED_COLUMNS)
    roles = roles_of_table(rows, context.params, context.number)
    gram = np.asarray(context.inputs["project"].metadata["encoding"]["gram"])
    return StudyClients(rows["coefficients"], rows["z"], rows["label"], roles, gram)


MetadataFunction = Callable[[Inputs, Params], Metadata]


def stated_metadata(**keys: str) -> MetadataFunction:
    """Return the metadata function that states settings: names to dotted keys."""

    def state_settings(inputs: Inputs, params: Params) -> Metadata:
        return {name: params[key] for name, key in keys.items()}

    return state_settings


def draw_stage(
    kind: Message,
) -> tuple[MetadataFunction, Callable[[StageContext], Rows]]:
    """Return the metadata and table functions of a stage that draws ``kind``.

    Rows are in random order, which is drawn after the noise.
    """

    def draw_shuffled(context: StageContext) -> Rows:
        task, clients = study_task(context, kind), study_clients(context)
        rows = kind.senders.rows(clients.roles)
        candidates = assign_candidates(task, len(rows), context.generator("split"))
        order = context.generator("shuffle").permutation(len(rows))
        messages = draw_messages(context, kind, task, clients.data_of(rows, candidates))
        shuffled = {name: values[order] for name, values in messages.items()}
        return {kind.table: kind.collect(task, shuffled)}

    return partial(study_metadata, kind), draw_shuffled


def draw_stage_in_portions(
    kind: Message,
) -> tuple[MetadataFunction, Callable[[StageContext], Iterator[Rows]]]:
    """Return the metadata and portion functions of a stage that draws ``kind``.

    Rows are in random order, which is drawn first: so 65,536 of them are in memory.
    """

    def draw_portions(context: StageContext) -> Iterator[Rows]:
        task, clients = study_task(context, kind), study_clients(context)
        rows = kind.senders.rows(clients.roles)
        rows = rows[context.generator("shuffle").permutation(len(rows))]
        for part, noise in context.noise(len(rows)):
            messages = kind.draw(task, clients.data_of(rows[part]), noise)
            yield {kind.table: kind.collect(task, messages)}

    return partial(study_metadata, kind), draw_portions


def study_task(context: StageContext, kind: Message) -> Task:
    """Return the task of one repetition, with tables of the server filled in."""
    stated_task = configured_task(kind, context.inputs, context.params)
    task: Task = kind.task(stated_task, context.rows)
    return task


def draw_messages(
    context: StageContext,
    kind: Message,
    task: AnyTask,
    data: ClientData,
    stage: str = "",
) -> Columns:
    """Return the messages of these clients, a row each.

    The noise is this stage's, unless another one's is named: common numbers.
    """
    columns: Columns = {}
    n = len(data.labels)
    for part, noise in context.noise(n, stage):
        for name, values in kind.draw(task, data.subset(part), noise).items():
            shape = n, *values.shape[1:]
            columns.setdefault(name, np.empty(shape, values.dtype))[part] = values
    return columns


@dataclass(frozen=True)
class TestClients:
    """The test clients of one replicate: features (n, d) and labels -1/+1."""

    features: Array
    labels: Array

    def decisions(self, coef: Array, intercept: Array) -> Array:
        """Return the decision values f_b(x_i) as an array (n, B)."""
        return np.asarray(self.features @ np.atleast_2d(coef).T + intercept)

    def error(self, decisions: Array) -> Array:
        """Return the misclassification of each column."""
        wrong = decision_sign(decisions) != self.labels[:, None]
        return np.asarray(np.mean(wrong, axis=0))


ScoreRow = tuple[str, str, float]


def score_table(rows: Iterable[ScoreRow]) -> Rows:
    """Return the table ``scores`` of (method, metric, value)."""
    kinds = {"method": object, "metric": object, "value": np.float64}
    return {SCORES.name: columns_of(rows, kinds)}


def score_rows(
    errors: Mapping[str, float], none_passed: Mapping[str, Any] | None = None
) -> Rows:
    """Return the table ``scores`` of one repetition: errors by method.

    A row tells the error of a method; where ``none_passed`` names the method, another
    one tells whether no classifier passed the cutoff.
    """
    rows = [(name, MISCLASSIFICATION.name, error) for name, error in errors.items()]
    flags = (none_passed or {}).items()
    rows += [(name, NONE_PASSED.name, flag) for name, flag in flags]
    return score_table(rows)


Places = NDArray[Any]


def has_many_classes(settings: PipelineSettings) -> bool:
    """Say whether a pipeline's source has more than two classes."""
    return len(lookup.classes(settings.source) or ()) > 2


# How many tested clients of a true class were said to be of one; 0 is left out.
CONFUSION: Final = Table(
    "confusion",
    {"true": TEXT, "said": TEXT, "n": "int64"},
    side="client (study)",
    unit="score",
    when=has_many_classes,
)


def score_places(
    context: StageContext,
    truth: Places,
    predictions: Mapping[str, Places],
    errors: Mapping[str, float] | None = None,
    decision: Array | None = None,
) -> Rows:
    """Return the tables of a report stage from the places that methods predict.

    ``truth`` and each of ``predictions`` (n,) are places of classes, of the tested
    clients; ``errors`` are those of further methods, ahead of them. The last method has
    more scores, by `add_class_scores`, which takes its ``decision`` (n,).
    """
    classes = context.inputs["project"].metadata["classes"]
    own_errors = {
        m: float(np.mean(places != truth)) for m, places in predictions.items()
    }
    rows = score_rows({**(errors or {}), **own_errors})
    main = [*predictions][-1]
    return add_class_scores(
        rows, main, truth, predictions[main], classes, decision=decision
    )


def confusion_matrix(truth: Places, predictions: Places, k: int) -> Places:
    """Return how many of each true class (rows) were said to be of each, (K, K)."""
    pairs = np.asarray(truth, dtype=np.int64) * k + predictions
    return np.bincount(pairs, minlength=k**2).reshape(k, k)


def mean_recall(matrix: Places) -> float:
    """Return the mean over the classes that occur of the share that is recognised."""
    n = matrix.sum(axis=1)
    return float((np.diag(matrix)[n > 0] / n[n > 0]).mean())


def ranking_scores(
    method: str, truth: Places, predictions: Places, decision: Array | None = None
) -> Iterator[ScoreRow]:
    """Yield balanced error and, given decision values (n,), AUC of a method.

    Nothing where only one class was tested.
    """
    from sklearn.metrics import roc_auc_score

    if len(np.unique(truth)) > 1:
        matrix = confusion_matrix(
            truth, predictions, 1 + int(max(truth.max(), predictions.max()))
        )
        yield method, BALANCED_ERROR.name, 1 - mean_recall(matrix)
        if decision is not None:
            yield method, AUC.name, float(roc_auc_score(truth, decision))


def chance_scores(n_classes: int) -> Iterator[ScoreRow]:
    """Yield what whoever always says one class has: of two classes also its AUC."""
    yield "majority", BALANCED_ERROR.name, 1 - 1 / n_classes
    if n_classes == 2:
        yield "majority", AUC.name, 0.5


def add_scores(rows: Rows, more: Iterable[ScoreRow]) -> Rows:
    """Return the tables of a report stage with scores (method, metric, value) added."""
    added = score_table(more)[SCORES.name]
    scores = {name: np.append(v, added[name]) for name, v in rows[SCORES.name].items()}
    return rows | {SCORES.name: scores}


def add_class_scores(
    rows: Rows,
    method: str,
    truth: Places,
    predictions: Places,
    classes: Sequence[str],
    *,
    decision: Array | None = None,
) -> Rows:
    """Return the tables of a report stage with scores that look at classes added.

    ``truth`` and ``predictions`` (n,) are places of the tested clients' ``classes``.
    ``scores`` gets the ``method``'s balanced error, with its ``decision`` (n,) for the
    second of two classes its AUC, and what the majority has of both. Of more than two
    classes it gets a row ``recall`` for each that was tested, and there is a table
    ``confusion``.
    """
    k, names = len(classes), np.array(classes, dtype=object)
    if "majority" in rows[SCORES.name]["method"]:
        rows = add_scores(rows, chance_scores(k))
    rows = add_scores(rows, ranking_scores(method, truth, predictions, decision))
    if k == 2:
        return rows
    matrix = confusion_matrix(truth, predictions, k)
    tested = matrix.sum(axis=1)
    was_tested = tested > 0
    n = int(was_tested.sum())
    recalls = {
        "method": np.full(n, method, dtype=object),
        "metric": np.full(n, RECALL.name, dtype=object),
        "value": np.diag(matrix)[was_tested] / tested[was_tested],
        "group": names[was_tested],
    }
    scores = rows[SCORES.name]
    scores = {"group": np.full(len(scores["value"]), None, dtype=object)} | scores
    true, predicted = np.nonzero(matrix)
    return rows | {
        SCORES.name: {
            name: np.concatenate([values, recalls[name]])
            for name, values in scores.items()
        },
        CONFUSION.name: {
            "true": names[true],
            "said": names[predicted],
            "n": matrix[true, predicted],
        },
    }
