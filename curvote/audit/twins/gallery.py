"""Gallery of broken twins by name; a new fault is a twin in this folder and a line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from curvote.audit.message_subject import record_subject_of
from curvote.audit.release import Memo, Release
from curvote.audit.twins import mechanisms, releases
from curvote.base.entropy import Entropy, SeededEntropy
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.chain.stage import Columns
from curvote.checks.examples import MORE, example_task
from curvote.checks.mechanism_subject import MechanismSubject, build_subject, subject_of
from curvote.checks.subject import BROKEN, SentSubject
from curvote.curves.direction import class_codes
from curvote.mechanisms.base import Mechanism
from curvote.mechanisms.factory import names
from curvote.mechanisms.laplace import Laplace
from curvote.mechanisms.randomized_response import KRR, BinaryRR
from curvote.messages.message import ClientData, Message
from curvote.systems.cells import messages as cells
from curvote.systems.direct.messages import Direction, Gradient, task_gradients
from curvote.systems.labels import audit
from curvote.systems.mrma.messages import Report, Vote
from curvote.systems.transfer.audit import subject as transfer
from curvote.wire.task import Task


def _double_budget_task(task: Task) -> Task:
    """Return the task at which label and features get all of epsilon each."""
    return replace(task, epsilon=2 * task.epsilon, label_share=0.5)


class ReportNotSplit(Report):
    """Spends the full epsilon on the label and again on the features."""

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss that is really spent."""
        return super().max_privacy_loss(_double_budget_task(task))

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return z (n, d) and label (n,), both noised."""
        return super().draw(_double_budget_task(task), data, entropy)

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> FloatArray:
        """Return the loss that is really spent."""
        return super().log_ratio(_double_budget_task(task), first, second, messages)


class NakedLabel(Report):
    """Noises the features, and forgets the label."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return noised z (n, d) and the true label (n,)."""
        columns = super().draw(task, data, entropy)
        return {**columns, "label": data.signs.astype(np.int8)}


class QuietLabelBin(Report):
    """Forgets the label's noise where the first number lies in a bin of width .01."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return noised z (n, d) and a label (n,) that is the true one in the bin."""
        columns = super().draw(task, data, entropy)
        quiet = np.abs(data.z[:, 0] - 0.305) < 0.005
        truth = data.signs.astype(np.int8)
        return {**columns, "label": np.where(quiet, truth, columns["label"])}


class _Twice(Message):
    """Sends one field of a message twice, with epsilon each time."""

    repeated: ClassVar[str]

    @property
    def _single(self) -> Any:
        """The message as it is sent once."""
        return super()

    def max_privacy_loss(self, task: Task) -> float:
        loss: float = 2 * self._single.max_privacy_loss(task)
        return loss

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        first, second = (self._single.draw(task, data, entropy) for _ in "ab")
        return {**first, "second": second[self.repeated]}

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> FloatArray:
        repetition = {**messages, self.repeated: messages["second"]}
        loss: FloatArray = self._single.log_ratio(task, first, second, messages)
        more: FloatArray = self._single.log_ratio(task, first, second, repetition)
        return loss + more


class DirectionTwice(_Twice, Direction):
    """Spends the full epsilon on the label moment and again on the second moment."""

    repeated = "direction"


class VoteTwice(_Twice, Vote):
    """Answers twice about its candidate, with epsilon each time."""

    repeated = "positive"


class LabelBeside(Direction):
    """Noises which way a record lies, and sends the label beside it."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the noised vectors of records without labels, and the labels."""
        bare = replace(data, labels=np.ones(len(data.labels)))
        columns = super().draw(task, bare, entropy)
        return {**columns, "label": data.labels}


class LabelBesideCode(Direction):
    """Hides the code of one of several classes, and names the class beside it.

    By k-RR, with the epsilon that the direction has spent.
    """

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss of both parts together."""
        return super().max_privacy_loss(task) + _label_mechanism(task).worst_log_ratio()

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the noised vectors, and noised labels of the same records."""
        columns = super().draw(task, data, entropy)
        label = _label_mechanism(task).randomize(data.labels, entropy)
        return {**columns, "label": label}

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> FloatArray:
        """Return the loss of both parts together."""
        pair = first.labels.astype(np.int64), second.labels.astype(np.int64)
        label = _label_mechanism(task).log_ratio(*pair, messages["label"])
        return super().log_ratio(task, first, second, messages) + label


def _label_mechanism(task: Task) -> KRR:
    return KRR(epsilon=task.epsilon, n_classes=len(task.classes))


class CornerOfWrongLength(Direction):
    """Gives classes codes of several lengths, to which it stretches the answer.

    So its mean is right, and its length is the class.
    """

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the noised vectors, as long as the codes of their classes."""
        directions = super().draw(task, data, entropy)["direction"]
        lengths = np.linspace(1, 2, len(task.classes))[data.labels.astype(np.int64)]
        return {"direction": directions * lengths[:, None]}


class LargeShareNotSplit(Report):
    """Gives the label all of epsilon where its share is above a half."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return z (n, d) and label (n,), the latter with too little noise."""
        columns = super().draw(task, data, entropy)
        if task.label_share == "equal" or float(task.label_share) <= 0.5:
            return columns
        label = BinaryRR(epsilon=task.epsilon).randomize(data.signs, entropy)
        return {**columns, "label": label.astype(np.int8)}


# No gradient of a record in [-1, 1]^d is so long.
_FAR = 1e3


class GradientUnclipped(Gradient):
    """Noises which way a gradient goes, and lets it be longer than its bound."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return noised gradients, as much longer as none was clipped."""
        noised = super().draw(task, data, entropy)["gradient"]
        encoder = task_gradients(task)
        of_label = class_codes(data.labels, encoder.n_classes)
        loose = replace(encoder, clip=_FAR).vectors(data.z, of_label)
        length = _FAR / encoder.clip * np.linalg.norm(loose[:, :-1], axis=1)
        return {"gradient": noised * np.maximum(length, 1)[:, None]}


class BinsFromData(cells.Answer):
    """Puts the edges of bins at the clients' own quantiles, which nobody hid."""

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return answers about bins that the other clients' records moved."""
        thresholds = np.asarray(task.params["threshold"])
        shares = np.arange(1, thresholds.shape[1] + 1) / (thresholds.shape[1] + 1)
        edges = np.quantile(data.z, shares, axis=0).T
        params = {**task.params, "threshold": edges.tolist()}
        return super().draw(replace(task, params=params), data, entropy)


class TwoFeatures(cells.Answer):
    """Asks each client about two numbers, with the whole budget for each."""

    def max_privacy_loss(self, task: Task) -> float:
        """Return the loss of both answers together."""
        return 2 * super().max_privacy_loss(task)

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return an answer to one question, and one to the question after it."""
        columns = super().draw(task, data, entropy)
        truth = cells.true_answers(
            task, data, _next_question(task, columns["question"])
        )
        second = cells.answer_mechanism(task).randomize(truth, entropy)
        return {**columns, "second": second}

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> FloatArray:
        """Return the loss of both answers together."""
        question = _next_question(task, messages["question"])
        second_message = {"question": question, "answer": messages["second"]}
        loss = super().log_ratio(task, first, second, messages)
        return loss + super().log_ratio(task, first, second, second_message)


def _next_question(task: Task, question: NDArray[np.int64]) -> NDArray[np.int64]:
    return (question + 1) % len(task.params["threshold"])


Broken = MechanismSubject | SentSubject | Memo | Release
Twin = Callable[[float], Broken]


def _mechanism_twin(
    kind: Callable[..., Mechanism], extra: tuple[FloatArray, ...] = (), **params: Any
) -> Twin:
    return lambda epsilon: subject_of(
        kind(epsilon=epsilon, **params), "", params, extra
    )


def _message_twin(message: Any, protocol: str, n_classes: int = 2) -> Twin:
    def make(epsilon: float) -> Broken:
        task = example_task(protocol, message.name, epsilon, n_classes)
        subject_kind = audit.label_subject if message.per_record else record_subject_of
        return replace(subject_kind(task), message=message)

    return make


def _rerun_twin(epsilon: float) -> Memo:
    """Return a release without memory: each run noises the value anew."""
    truth, laplace = np.array([0.25]), Laplace(epsilon=epsilon)

    def release(seed: int) -> Callable[[], FloatArray]:
        return partial(laplace.randomize, truth, SeededEntropy(seed))

    return Memo("", {}, Budget(epsilon), truth, release)


@dataclass(frozen=True, eq=False, kw_only=True)
class Doubled(MechanismSubject):
    """Declares the law of one mechanism and draws from another."""

    secret: Mechanism

    def send(self, many: FloatArray, entropy: Entropy) -> NDArray[Any]:
        """Return the outputs of clients who hold ``many``, a row each."""
        return self.secret.randomize(many, entropy)


# Small, so that few draws prove a larger one.
EPSILON = 0.5
FIVE = 5  # classes of a code
_COUNTED: dict[str, Any] = {
    "what": cells.COUNTS_ANSWER.what,
    "nominal_partitions": cells.COUNTS_ANSWER.nominal_partitions,
}
TWINS: Mapping[str, Twin] = {
    "sensitivity_halved": _mechanism_twin(mechanisms.SensitivityHalved),
    "budget_not_split": _mechanism_twin(mechanisms.BudgetNotSplit, d=3),
    "report_budget_not_split": _message_twin(ReportNotSplit(), "mrma"),
    "float_laplace": _mechanism_twin(mechanisms.FloatLaplace),
    "min_max_2023": _mechanism_twin(
        mechanisms.MinMax2023, extra=mechanisms.FAR_APART, d=4
    ),
    "unary_full_epsilon": _mechanism_twin(mechanisms.UnaryFullEpsilon, n_classes=4),
    "rerandomised_memo": _rerun_twin,
    "raw_echo": _mechanism_twin(mechanisms.RawEcho),
    "no_noise": _mechanism_twin(mechanisms.NoNoise),
    "off_by_one_threshold": _mechanism_twin(mechanisms.OffByOneThreshold),
    "off_by_one_comparison": _mechanism_twin(mechanisms.OffByOneComparison),
    "same_seed": _mechanism_twin(mechanisms.SameSeed),
    "shared_noise": _mechanism_twin(mechanisms.SharedNoise),
    "repeated_blocks": _mechanism_twin(mechanisms.RepeatedBlocks),
    "passes_nan": _mechanism_twin(mechanisms.PassesNaN),
    "missing_for_large": _mechanism_twin(mechanisms.MissingForLarge),
    "no_clipping": _mechanism_twin(mechanisms.NoClipping),
    "subset_with_label": _mechanism_twin(mechanisms.SubsetWithLabel, n_classes=4),
    "gaussian_halved": _mechanism_twin(mechanisms.GaussianHalved, d=3, delta=1e-5),
    "naked_label": _message_twin(NakedLabel(), "mrma"),
    "quiet_label_bin": _message_twin(QuietLabelBin(), "mrma"),
    "vote_twice": _message_twin(VoteTwice(), "mrma"),
    "direction_twice": _message_twin(DirectionTwice(), "direct"),
    "label_beside": _message_twin(LabelBeside(), "direct"),
    "gradient_unclipped": _message_twin(GradientUnclipped(), "sgd"),
    "label_beside_code": _message_twin(LabelBesideCode(), "direct", FIVE),
    "corner_of_wrong_length": _message_twin(CornerOfWrongLength(), "direct", FIVE),
    "half_noise_for_few": _mechanism_twin(mechanisms.HalfNoiseForFew),
    "exact_half_noise_for_few": _mechanism_twin(mechanisms.ExactHalfNoiseForFew),
    "quiet_bin": _mechanism_twin(mechanisms.QuietBin),
    "quiet_at_tenths": _mechanism_twin(mechanisms.QuietAtTenths),
    "half_noise_in_a_bin": _mechanism_twin(mechanisms.HalfNoiseInABin),
    "quiet_where_clipped": _mechanism_twin(mechanisms.QuietWhereClipped),
    "lagged_noise": _mechanism_twin(mechanisms.LaggedNoise),
    "one_noise_for_two": _mechanism_twin(mechanisms.OneNoiseForTwo, d=3),
    "coarse_threshold": _mechanism_twin(mechanisms.CoarseThreshold),
    "coarse_rounding": _mechanism_twin(mechanisms.CoarseRounding),
    "halved_threshold": _mechanism_twin(mechanisms.HalvedThreshold, d=3),
    "words_by_label": _mechanism_twin(
        mechanisms.WordsByLabel, n_classes=4, prior=(0.33, 0.33, 0.33, 0.01)
    ),
    "labels_alibi_half_scale": _mechanism_twin(audit.AlibiHalfScale, n_classes=4),
    "labels_one_bit_counted": _mechanism_twin(audit.OneBitCounted, n_classes=4),
    "labels_code_each_epoch": _message_twin(audit.CodeEachEpoch(), "labels", MORE),
    "labels_prior_from_labels": _message_twin(
        audit.PriorFromLabels(), "labels_two", MORE
    ),
    "labels_nudged_prior": _message_twin(audit.NudgedPrior(), "labels_two", MORE),
    "labels_both_rounds": _message_twin(audit.BothRounds(), "labels_two", MORE),
    "labels_label_in_features": _message_twin(audit.LabelInFeatures(), "labels", MORE),
    "large_share_not_split": _message_twin(LargeShareNotSplit(), "mrma"),
    "bins_from_data": _message_twin(BinsFromData(**_COUNTED), "counts"),
    "two_features": _message_twin(TwoFeatures(**_COUNTED), "counts"),
    **releases.table_twins(),
    **transfer.release_twins(),
    **releases.command_twins(),
}


def gallery_names() -> list[str]:
    """Return ``broken.<name>`` of each fault and each mechanism."""
    return [BROKEN + name for name in (*TWINS, *(f"doubled_{n}" for n in names()))]


def gallery(name: str, epsilon: float = EPSILON) -> Broken:
    """Return the broken twin ``name`` of ``gallery_names()``.

    ``doubled_`` and the name of a mechanism claims epsilon and spends twice as much.
    """
    key = name.removeprefix(BROKEN)
    if key in TWINS:
        return replace(TWINS[key](epsilon), name=name)
    key = key.removeprefix("doubled_")
    secret = build_subject(key, 2 * epsilon).mechanism
    honest = build_subject(key, epsilon)
    return Doubled(honest.mechanism, name, honest.params, honest.budget, secret=secret)
