"""Messages of `direct` and its variants: one noised vector a client."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat

from curvote.base import validate
from curvote.base.blanket import Blanket
from curvote.base.entropy import Entropy, is_study, stream
from curvote.base.errors import UserError
from curvote.chain.stage import Columns
from curvote.client.report import DirectionReporter, OneOfReporter
from curvote.curves.direction import (
    MEAN_SQUARE,
    Array,
    Directions,
    Gradients,
    Whitening,
    class_codes,
)
from curvote.curves.encoding import Encoding
from curvote.learning.sums import SumForm, bits_below
from curvote.mechanisms.privunit import MAX_CLASSES, OneOf, PrivUnit
from curvote.messages import arms
from curvote.messages.message import (
    ClientData,
    Message,
    Payload,
    SettingReader,
    TableReader,
    check_class_count,
    check_fields,
)
from curvote.messages.roles import EVERYBODY, Senders
from curvote.systems.common.judgement import ReleaseJudgement, aggregated_rule
from curvote.wire.task import Task


class DirectionPayload(Payload):
    """A noised direction as JSON."""

    direction: list[FiniteFloat]


class VectorMessage(Message):
    """A client's record as one unit vector, noised with the whole budget.

    It is the last of the ``columns``; a class that is noised beside it stands ahead.
    """

    columns: ClassVar[tuple[str, ...]]
    summed = True

    def mechanisms(self, task: Task, n: int | None = None) -> Sequence[PrivUnit]:
        """Return that of the whole message."""
        return (self._reporter(task).mechanism,)

    def shuffled_law(self, task: Task) -> Blanket:
        """Return the blanket of the vector's law."""
        law: Blanket = self._reporter(task).mechanism.blanket()
        return law

    def sum_form(self, task: Task) -> SumForm:
        """Return the vector to be summed, at the precision that its length allows."""
        length = 1 / self._reporter(task).mechanism.m
        return SumForm(self.columns[-1], bits_below(length))

    def count_numbers(self, task: Task) -> int:
        """Return the size of the vector."""
        return self._vectors(task).size

    def draw(self, task: Task, data: ClientData, entropy: Entropy) -> Columns:
        """Return the noised vectors, (n, size), and the classes beside them, (n,)."""
        record = self._record_arrays(task, data)
        noise, study = stream(entropy, "feature_noise"), is_study(entropy)
        released = self._reporter(task).release(*record, noise, study=study)
        parts = released if len(self.columns) > 1 else (released,)
        return dict(zip(self.columns, parts, strict=True))

    def possible_mask(self, task: Task, messages: Columns) -> NDArray[np.bool_]:
        """Say for each message whether the mechanism can have given it."""
        parts = (messages[name] for name in self.columns)
        return np.asarray(self._reporter(task).possible(*parts))

    def log_ratio(
        self, task: Task, first: ClientData, second: ClientData, messages: Columns
    ) -> Array:
        """Return the privacy loss of the message, that is of the whole record."""
        pair = self._record_arrays(task, first), self._record_arrays(task, second)
        parts = tuple(np.asarray(messages[name]) for name in self.columns)
        at = parts if len(parts) > 1 else parts[0]
        return np.asarray(self._reporter(task).log_ratio(*pair, at))

    def collect(self, task: Task, messages: Columns) -> Columns:
        """Return the server's table of the noised vectors."""
        size, name = self._vectors(task).size, self.columns[-1]
        return {name: messages[name].reshape(-1, size)}

    def _reporter(self, task: Task) -> Any:
        """Return what releases a record, and knows the law of what it released."""
        return DirectionReporter.build(self._vectors(task), task.epsilon)

    @abstractmethod
    def _vectors(self, task: Task) -> Directions | Gradients:
        """Return how records become vectors, as the task states it."""

    def _record_arrays(self, task: Task, data: ClientData) -> tuple[Array, Array]:
        return data.z, class_codes(data.labels, len(task.classes))


@dataclass(frozen=True)
class Direction(VectorMessage):
    """A client's record as one unit vector, noised by `PrivUnit`."""

    columns: ClassVar[tuple[str, ...]] = ("direction",)
    senders: Senders = EVERYBODY
    name: str = "report"
    stage: str = "privatize"
    table: str = "directions"
    payload: type[Payload] = DirectionPayload
    fields: tuple[str, ...] = arms.PUBLISHED_NAMES
    who: str = "every client"
    what: str = "one noised direction, made of its numbers and its label"
    mechanism: str = PrivUnit.name
    detail: str = "with all of epsilon"
    binary: bool = False

    def terms(self, setting: SettingReader, encoding: Encoding) -> dict[str, Any]:
        """Return the constants of the vectors, by arm and intercept."""
        return task_terms(setting("direct.arm"), encoding, setting("direct.intercept"))

    def min_messages(self, config: Mapping[str, Any]) -> int:
        """Return 2: a mean of reports needs two."""
        return 2

    def nominal_task(self, base_task: Task) -> Task:
        """Return the task itself, or that of arm ``joint`` where none is named."""
        return nominal_terms_task(base_task, "joint")

    def check_task(self, task: Task) -> None:
        """Refuse another mechanism, constants out of range and candidates."""
        check_fields(task, params=self.fields, binary=self.binary)
        check_class_count(len(task.classes))
        validate.one_of((self.mechanism,), mechanism=task.mechanism)
        directions = self._vectors(task)
        arms.check_moment_width(directions.d, directions.share)

    def _vectors(self, task: Task) -> Directions:
        return arms.directions_from_params(
            task.encoding.d, task.params, len(task.classes)
        )


def nominal_terms_task(base_task: Task, arm: str) -> Task:
    """Return the base task, with constants of an arm where it has none."""
    named = (
        dict(base_task.params) or task_terms(arm, base_task.encoding, "auto")["params"]
    )
    return replace(base_task, mechanism=PrivUnit.name, params=named)


def task_terms(arm: str, encoding: Encoding, intercept: float | str) -> dict[str, Any]:
    """Return the task fields of an arm."""
    directions = arms.make_directions(arm, encoding.d, encoding.rescale, intercept)
    return {"mechanism": PrivUnit.name, "params": arms.directions_to_params(directions)}


SECOND_SENDERS = Senders(EVERYBODY.roles, start=arms.FIRST_ROUND_SHARE)


@dataclass(frozen=True)
class Refinement(Direction):
    """Direction in coordinates that a first round has whitened."""

    senders: Senders = SECOND_SENDERS
    name: str = "refinement"
    stage: str = "refine"
    fields: tuple[str, ...] = (*arms.PUBLISHED_NAMES, "matrix", "centre")
    who: str = "client of the second round"
    detail: str = "in the new coordinates"

    def task(self, base_task: Task, read: TableReader) -> Task:
        """Return the first round's task with the whitening that came of it."""
        rows = read("whiten", "whitening")
        whitening = Whitening(rows["matrix"], rows["centre"])
        return self._with_whitening(base_task, whitening)

    def nominal_task(self, base_task: Task) -> Task:
        """Return a task whose coordinates are turned, stretched and moved."""
        d = base_task.encoding.d
        matrix = np.eye(d) + np.triu(np.full((d, d), 0.5), 1)
        first = super().nominal_task(base_task)
        return self._with_whitening(first, Whitening(matrix, np.full(d, 0.25)))

    def check_task(self, task: Task) -> None:
        """Refuse a whitening of another width, and all that `Direction` refuses."""
        super().check_task(task)
        whitening = self._whitening(task)
        if whitening.centre.shape != (task.encoding.d,):
            raise UserError(
                f"the whitening is of {whitening.centre.size} numbers; the encoding has"
                f" {task.encoding.d}."
            )

    def _with_whitening(self, base_task: Task, whitening: Whitening) -> Task:
        names = ("matrix", "centre")
        constants = {name: getattr(whitening, name).tolist() for name in names}
        params = {**base_task.params, **constants}
        return replace(base_task, asks=self.name, params=params)

    def _vectors(self, task: Task) -> Directions:
        return super()._vectors(task).whitened

    def _record_arrays(self, task: Task, data: ClientData) -> tuple[Array, Array]:
        z, code = super()._record_arrays(task, data)
        return self._whitening(task).apply(z), code

    def _whitening(self, task: Task) -> Whitening:
        return Whitening(*(np.asarray(task.params[n]) for n in ("matrix", "centre")))


FIRST_ROUND = Direction(
    senders=Senders(EVERYBODY.roles, end=arms.FIRST_ROUND_SHARE),
    who="client of the first round",
    detail="to centre and whiten the numbers",
)


ONE_OF_ARM = "one_of"


class OneOfPayload(Payload):
    """Payload of 1-of-K: a class's place, and a noised direction."""

    named: Annotated[int, Field(ge=0, lt=MAX_CLASSES)]
    direction: list[FiniteFloat]


@dataclass(frozen=True)
class NamedDirection(Direction):
    """A client's record as a class and a unit vector, noised together by `OneOf`."""

    columns: ClassVar[tuple[str, ...]] = ("named", "direction")
    table: str = "named_directions"
    payload: type[Payload] = OneOfPayload
    what: str = "one of the classes and a direction, both noised together"
    mechanism: str = OneOf.name

    def terms(self, setting: SettingReader, encoding: Encoding) -> dict[str, Any]:
        """Return the constants of the vectors, as the intercept makes them."""
        terms = task_terms(ONE_OF_ARM, encoding, setting("direct.intercept"))
        return {**terms, "mechanism": OneOf.name}

    def nominal_task(self, base_task: Task) -> Task:
        """Return the task itself, or one of the arm where it names no constants."""
        return replace(nominal_terms_task(base_task, ONE_OF_ARM), mechanism=OneOf.name)

    def collect(self, task: Task, messages: Columns) -> Columns:
        """Return the table ``named_directions``."""
        named = messages["named"].astype(np.int64)
        return {**super().collect(task, messages), "named": named}

    def _reporter(self, task: Task) -> OneOfReporter:
        return OneOfReporter.build(self._vectors(task), len(task.classes), task.epsilon)

    def _record_arrays(self, task: Task, data: ClientData) -> tuple[Array, Array]:
        return data.z, data.labels

    def _vectors(self, task: Task) -> Directions:
        return arms.directions_from_params(task.encoding.d, task.params)


GRADIENT_NAMES = ("intercept", "clip", "square", "coef")


class GradientPayload(Payload):
    """A noised gradient as JSON."""

    gradient: list[FiniteFloat]


@dataclass(frozen=True)
class Gradient(VectorMessage):
    """A client's clipped gradient, filled up to a unit vector, by `PrivUnit`."""

    columns: ClassVar[tuple[str, ...]] = ("gradient",)
    senders: Senders = EVERYBODY
    name: str = "gradient"
    stage: str = "descend"
    table: str = "gradients"
    payload: type[Payload] = GradientPayload
    what: str = "one noised gradient of its loss, clipped, its length hidden too"
    mechanism: str = PrivUnit.name
    detail: str = "with all of epsilon, in the one round that its client is asked in"

    def terms(self, setting: SettingReader, encoding: Encoding) -> dict[str, Any]:
        """Return the constants of gradients; coefficients come with the classes."""
        return gradient_terms(encoding, setting("sgd.clip"))

    def task(self, base_task: Task, read: TableReader) -> Task:
        """Return the first round's task: at coefficients of 0."""
        d, n_classes = base_task.encoding.d, len(base_task.classes)
        return task_at(base_task, start_coefficients(d, n_classes))

    def nominal_task(self, base_task: Task) -> Task:
        """Return a task at coefficients at which some gradients are clipped."""
        clipped_task = replace(base_task, **gradient_terms(base_task.encoding, 0.25))
        zero = start_coefficients(base_task.encoding.d, len(base_task.classes))
        return task_at(clipped_task, np.linspace(-4, 4, zero.size).reshape(zero.shape))

    def check_task(self, task: Task) -> None:
        """Refuse another mechanism, constants out of range and candidates."""
        check_fields(task, params=GRADIENT_NAMES, binary=False)
        check_class_count(len(task.classes))
        validate.one_of((PrivUnit.name,), mechanism=task.mechanism)
        if task_gradients(task).n_classes != len(task.classes):
            raise UserError(f"coef is not of {len(task.classes)} classes.")

    def _vectors(self, task: Task) -> Gradients:
        return task_gradients(task)


def task_gradients(task: Task) -> Gradients:
    """Return the gradients that a task publishes; UserError: it lacks a constant."""
    return gradients_from_params(task.encoding.d, task.params)


def gradients_from_params(d: int, params: Mapping[str, Any]) -> Gradients:
    """Return the gradients that parameters of a task describe."""
    missing = [name for name in GRADIENT_NAMES if name not in params]
    if missing:
        raise UserError(f"the task states no {', '.join(missing)} of its gradients.")
    return Gradients(d, **{name: params[name] for name in GRADIENT_NAMES})


def gradient_terms(encoding: Encoding, clip: float) -> dict[str, Any]:
    """Return the task fields of gradients, without coefficients."""
    square = MEAN_SQUARE[encoding.rescale]
    intercept = float(arms.INTERCEPT_FACTOR * np.sqrt(encoding.d * square))
    named = {"intercept": intercept, "clip": float(clip), "square": square}
    return {"mechanism": PrivUnit.name, "params": named}


def start_coefficients(d: int, n_classes: int) -> Array:
    """Return the coefficients (K - 1, p) of the first round: zeros."""
    return np.zeros((n_classes - 1, d + 1))


def task_at(task: Task, coef: Array) -> Task:
    """Return the task of a round: the same at other coefficients."""
    return replace(task, params={**task.params, "coef": coef.tolist()})


JUDGEMENT = {"judgement": ReleaseJudgement(partial(aggregated_rule, "classifier"))}
MESSAGES: dict[str, Message] = {"report": Direction(), **JUDGEMENT}
MESSAGES_BY_SYSTEM: dict[str, dict[str, Message]] = {
    "direct": MESSAGES,
    "direct_two": {"report": FIRST_ROUND, "refinement": Refinement(), **JUDGEMENT},
    "direct_one_of": {"report": NamedDirection(), **JUDGEMENT},
    "sgd": {"gradient": Gradient()},
}
