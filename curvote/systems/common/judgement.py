"""Judgement of a released classifier: one noised bit of each client kept as a judge."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy, stream
from curvote.base.errors import UserError
from curvote.chain.stage import Columns, Table
from curvote.chain.system import MessageDescription
from curvote.curves.encoding import classifier_features, predict_indices
from curvote.curves.partition import PARTS, Partitions, bin_partitions
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages import message
from curvote.messages.message import Array, ClientData, TableReader
from curvote.messages.roles import JUDGES
from curvote.systems.common.questions import complete_labels
from curvote.systems.common.tables import VOTES
from curvote.wire.task import Task

JUDGEMENTS: Final = Table("judgements", VOTES.columns, unit="classifier")
# What a task publishes of a classifier: lines, or the scores of cells by class.
LINES: Final = ("coef", "intercept")
CELLS: Final = (*PARTS, "score")
# The classifier in the tables that the server has, for a task of so many classes.
Rule = Callable[[Task, TableReader], Columns]


class JudgementPayload(message.Payload):
    """A judgement as JSON: the noised bit."""

    right: bool


@dataclass(frozen=True)
class ReleaseJudgement(message.Message):
    """A judge's noised bit: is the class that the classifier predicts mine?

    Of any number of classes it is this one question. ``rule`` finds the classifier,
    which the task states: lines as coef (R, d) and intercept (R,), R is 1 of two
    classes, else K; or public ``cells`` and their scores (Q, C K), whose sum decides.
    """

    rule: Rule
    cells: bool = False
    senders = JUDGES
    name, stage, table = "judgement", "judge", "judgements"
    payload = JudgementPayload
    count_columns = ("n", "positive")
    summed = True
    who, what = "judge", 'one noised bit: "the released classifier was right for me"'
    mechanism = BinaryRR.name
    detail = "nothing else of a judge leaves; the whole budget is on the bit"

    def describe(self, config: Mapping[str, Any], d: int) -> list[MessageDescription]:
        """Return the description of the bit, where any client is kept as a judge."""
        return [*super().describe(config, d)] if config.get("judges") else []

    def task(self, base_task: Task, read: TableReader) -> Task:
        """Return the base task with the classifier that was made."""
        return self._with_rule(base_task, self.rule(base_task, read))

    def nominal_task(self, base_task: Task) -> Task:
        """Return the base task; the last class is where the first number is above 0."""
        k, d = len(base_task.classes), base_task.encoding.d
        lines = np.zeros((k if k > 2 else 1, d))
        lines[-1, 0] = 1.0
        rule = {"coef": lines, "intercept": 0 * lines[:, 0]}
        if self.cells:
            partitions = bin_partitions(d, base_task.encoding.rescale, 2)
            score = np.zeros((d, 2 * k))
            score[0, -1] = 1.0
            rule = {**partitions.columns, "score": score}
        return self._with_rule(base_task, rule)

    def check_task(self, task: Task) -> None:
        """Refuse other fields, and a classifier of another shape."""
        params = CELLS if "score" in task.params else LINES
        message.check_fields(task, params=params, binary=False)
        message.check_class_count(len(task.classes))
        validate.one_of((self.mechanism,), mechanism=task.mechanism)
        k, d = len(task.classes), task.encoding.d
        expected: dict[str, tuple[int, ...]] = {"coef": (k if k > 2 else 1, d)}
        expected["intercept"] = expected["coef"][:1]
        if params == CELLS:
            partitions = Partitions.from_columns(task.params, d)
            expected = {"score": (partitions.count, partitions.cells * k)}
        for name, shape in expected.items():
            actual = validate.finite(**{name: task.params[name]}).shape
            if actual != shape:
                raise UserError(f"{name} has shape {actual}; it must be {shape}.")

    def mechanisms(self, task: Task, n: int | None = None) -> Sequence[BinaryRR]:
        """Return that of the one bit."""
        return (BinaryRR(epsilon=task.epsilon),)

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the noised bit of each judge, (n,)."""
        truth = self.true_signs(task, data)
        mechanism, noise = BinaryRR(epsilon=task.epsilon), stream(entropy, "vote")
        return {"right": mechanism.randomize(truth, noise) > 0}

    def possible_mask(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Return True for each bit: both are possible."""
        return np.ones(len(messages["right"]), dtype=bool)

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the privacy loss of the bit."""
        bits = np.where(messages["right"], 1.0, -1.0)
        pair = self.true_signs(task, first), self.true_signs(task, second)
        return BinaryRR(epsilon=task.epsilon).log_ratio(*pair, bits)

    def collect(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``judgements``: one row of counts."""
        right = np.asarray(messages["right"], dtype=bool)
        counts = {"learner": 0, "n": right.size, "positive": right.sum()}
        return {name: np.array([n], dtype=np.int64) for name, n in counts.items()}

    def true_signs(self, task: Task, data: ClientData) -> Array:
        """Return 1 where the predicted class is the client's, else -1, (n,)."""
        labels = complete_labels(data, len(task.classes))  # before anything is drawn
        if data.z.shape[1:] != (task.encoding.d,):
            raise UserError(f"z has shape {data.z.shape}; not {task.encoding.d} wide.")
        return np.where(predicted_places(task, data) == labels, 1.0, -1.0)

    def _with_rule(self, base_task: Task, rule: Columns) -> Task:
        names = CELLS if "score" in rule else LINES
        params = {name: rule[name].tolist() for name in names}
        plain_task = replace(base_task, candidates=None, mechanism=self.mechanism)
        return replace(plain_task, asks=self.name, params=params)


def predicted_places(task: Task, data: ClientData) -> NDArray[np.int64]:
    """Return the places (n,) of the classes that the task's classifier predicts."""
    if "score" in task.params:
        from curvote.learning.cells import total_scores

        partitions = Partitions.from_columns(task.params, task.encoding.d)
        shape = partitions.count, partitions.cells, len(task.classes)
        scores = np.reshape(task.params["score"], shape)
        return np.asarray(total_scores(scores, partitions, data.z).argmax(axis=1))
    arrays = data.coefficients, data.z, task.encoding.projection.gram
    features = classifier_features(task.encoding.feature_map, *arrays)
    coef, intercept = (np.asarray(task.params[name]) for name in LINES)
    return predict_indices(features @ coef.T + intercept)


def aggregated_rule(table: str, task: Task, read: TableReader) -> Columns:
    """Return a table of stage ``aggregate`` that holds lines, or a scorecard."""
    return read("aggregate", table)
