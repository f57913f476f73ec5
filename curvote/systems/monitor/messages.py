"""Message and task of `monitor`: one noised answer about a model, by windows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from curvote.base import validate
from curvote.base.blanket import Blanket
from curvote.base.classes import Classes
from curvote.base.entropy import Entropy, SystemEntropy
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.base.text import format_names, normalise_id
from curvote.chain.axis import PipelineSettings
from curvote.chain.settings import parse_span
from curvote.chain.stage import Columns, Inputs, Params
from curvote.chain.system import MessageDescription
from curvote.learning.sums import SumForm
from curvote.mechanisms.labels import PackedMechanism, SupportMechanism
from curvote.messages import message
from curvote.messages.message import ClientData, Outcome, Windows
from curvote.messages.roles import Senders
from curvote.systems.labels.messages import CODE, CodeMessage
from curvote.systems.monitor import encoders
from curvote.systems.monitor.questions import (
    CALIBRATION,
    CLASS,
    ERROR,
    MOST_WORDS,
    RIGHT,
    VERSUS,
    Question,
)
from curvote.wire.task import AnyTask, Epsilon, MechanismParams, Number, TaskForm, Word

PROTOCOL: Final = "monitor"
ASKS: Final = "answer"
PLACE: Final = "place"
# What a task calls its classes where the question is about none.
NO_CLASSES: Final = ("wrong", "right")
Names = Annotated[list[Word], Field(max_length=MOST_WORDS)]


class MonitorForm(TaskForm):
    """JSON form of a task about a model as `Task.to_json` writes it."""

    format: Literal[4]
    epsilon: Epsilon
    question: Literal["right", "class", "calibration", "error", "versus"]
    encoder: Word
    params: MechanismParams
    words: Annotated[int, Field(ge=2, le=MOST_WORDS)]
    groups: Names
    places: Names
    bounds: Annotated[list[Number], Field(min_length=2, max_length=2)] | None
    model: Annotated[list[Word], Field(min_length=1, max_length=2)] | None
    closes: Word | None

    @model_validator(mode="after")
    def _check_fields(self) -> MonitorForm:
        self.refuse_lookalikes()
        for members in (self.groups, self.places):
            if len(members) == 1 or len(set(members)) < len(members):
                raise ValueError("groups must be none, or two or more different ones")
        if self.encoder not in encoders.NAMES:
            names = ", ".join(encoders.NAMES)
            raise ValueError(f"encoder must be one of {names}")
        if self.closes is not None:
            datetime.fromisoformat(self.closes)
        return self


@dataclass(frozen=True, eq=False)
class Task(AnyTask):
    """One question about a model to everybody invited; every field is public.

    ``word_count`` is that of one group, ``groups`` are private, ``places`` public ones,
    of which the invitation names one. ``closes`` is when its window ends: an answer
    counts later, too.
    """

    FORMAT = 4
    REFUSAL = "a model is asked about in"
    form = MonitorForm

    classes: Classes
    epsilon: float
    question: str = RIGHT
    encoder: str = "k_rr"
    params: Mapping[str, Any] = field(default_factory=dict)
    word_count: int = 2
    groups: Sequence[str] = ()
    places: Sequence[str] = ()
    bounds: Sequence[float] | None = None
    model: Sequence[str] | None = None
    closes: str | None = None
    number: int = 1
    asks: str = ASKS
    protocol: str = PROTOCOL

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", Classes(str(name) for name in self.classes))
        validate.at_least(1, number=self.number)
        if self.asked_question.words != self.word_count:
            raise UserError(
                f"a question of {self.question} has {self.asked_question.words} words,"
                f" but the task says {self.word_count}."
            )

    @property
    def asked_question(self) -> Question:
        """The question, with its classes, bins or levels."""
        return Question(
            self.question,
            classes=tuple(self.classes) if self.question == CLASS else (),
            bins=max(1, self.word_count // 2) if self.question == CALIBRATION else 1,
            bounds=None if self.bounds is None else (self.bounds[0], self.bounds[1]),
            levels=self.word_count if self.question == ERROR else None,
            groups=tuple(self.groups),
        )

    @property
    def mechanism(self) -> str:
        """The name of the mechanism that noises the answer."""
        return self.encoder

    @property
    def subject_count(self) -> int | None:
        """The number of public groups, of which an invitation names one."""
        return len(self.places) or None

    @property
    def label_count(self) -> int:
        """The number of words of all private groups."""
        return self.asked_question.all_words

    def noise(self) -> SupportMechanism:
        """Return the mechanism, on the words of all private groups."""
        return encoders.build(self.encoder, self.epsilon, self.label_count, self.params)

    def cost(self, n: int = 1) -> Budget:
        """Return what the answer about each of ``n`` records costs."""
        validate.at_least(1, n=n)
        return Budget(self.epsilon)

    def payload(self) -> dict[str, Any]:
        """Return the fields that a task about a model adds."""
        return {
            "epsilon": self.epsilon,
            "question": self.question,
            "encoder": self.encoder,
            "params": dict(self.params),
            "words": self.word_count,
            "groups": list(self.groups),
            "places": list(self.places),
            "bounds": None if self.bounds is None else list(self.bounds),
            "model": None if self.model is None else list(self.model),
            "closes": self.closes,
        }

    @classmethod
    def read_payload(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a checked form; its words are a number."""
        return {
            "word_count" if name == "words" else name: value
            for name, value in values.items()
        }


TASK = Task


class AnswerPayload(message.Payload):
    """An answer as JSON: its code, a number or several."""

    code: int | list[int]


class PlacedAnswerPayload(AnswerPayload):
    """An answer as JSON, with the public group that its invitation names."""

    place: Annotated[int, Field(ge=0)]


# Of different codes and groups; the state of so many has some 100 KB.
MOST_CODES: Final = 1 << 12


class Answer(CodeMessage):
    """One noised word about a model and a record, by the encoder of the task."""

    name, stage, table = ASKS, "answer", "model_answers"
    senders = Senders(())
    payload: type[message.Payload] = AnswerPayload
    subject_field = PLACE
    per_record, shuffled, about_model = False, True, True
    summed = True
    schedule_settings = ("monitor.rounds",)
    who, mechanism = "every person asked", "the best encoder"
    what = "one noised answer about the model"
    detail = "with all of epsilon, once a window"

    def shuffled_law(self, task: Task) -> Blanket:
        """Return the blanket of the encoder's law."""
        return task.noise().blanket()

    def describe(self, config: Mapping[str, Any], d: int) -> list[MessageDescription]:
        """Return the description of an answer, with what is asked and how."""
        terms = config["monitor"]
        epsilon = min(config["epsilon"])
        encoder = question_of(terms).encoder(epsilon)
        what = f'one noised answer to the question "{terms["question"]}"'
        return [MessageDescription(self.who, what, encoder.name, self.detail)]

    def payload_of(self, task: Any) -> type[message.Payload]:
        """Return the form of an answer, which names a place where there are some."""
        return PlacedAnswerPayload if task.places else AnswerPayload

    def windows(self, config: Mapping[str, Any]) -> Windows:
        """Return the windows in which it is asked."""
        terms = config["monitor"]
        length = parse_span(terms["window"])
        late = parse_span(terms["late"]) if terms["late"] else length
        return Windows(length, late, terms["rounds"])

    def opened(self, task: Task, config: Mapping[str, Any]) -> Task:
        """Return the task of a window that opens now."""
        end = datetime.now(UTC) + timedelta(seconds=self.windows(config).length)
        return replace(task, closes=end.isoformat(timespec="minutes"))

    def invited_count(self, config: Mapping[str, Any]) -> int:
        """Return how many people are asked in one window."""
        return int(config["monitor"]["people"])

    def sum_form(self, task: Any) -> SumForm | None:
        """Return words alone where codes are few; of many, rows are as small a state.

        A code of `KRR` or `Hadamard` is a number, others are any set of words, or any
        of a size.
        """
        mechanism = task.noise()
        codes = words = mechanism.n_classes
        if isinstance(mechanism, PackedMechanism):
            omega = getattr(mechanism, "omega", None)
            codes = 2**words if omega is None else math.comb(words, omega)
        places = max(1, len(task.places))
        return SumForm() if codes * places <= MOST_CODES else None

    def invited_settings(self, count: int) -> dict[str, dict[str, Any]]:
        """Return the number of people asked."""
        return {"monitor": {"people": count}}

    def made_up_words(self, task: Task, rng: np.random.Generator) -> dict[str, str]:
        """Return what models said and what is true, and what else is asked for."""
        q = task.asked_question
        texts = [*task.classes]
        if q.name == ERROR:
            texts = [*map(str, rng.uniform(*(q.bounds or (0.0, 1.0)), 2))]
        outputs = rng.choice(texts, 2 if q.name == VERSUS else 1).tolist()
        words = {"answered": ",".join(outputs), "truth": str(rng.choice(texts))}
        if q.groups:
            words["group"] = str(rng.choice(q.groups))
        if q.name == CALIBRATION:
            words["probability"] = str(rng.random())
        return words

    def example_task(self, size: int, epsilon: float) -> Task:
        """Return the task of a question with so many words: each has its own number."""
        names = {2: RIGHT, 4: VERSUS, 5: ERROR}
        k = round(size**0.5)
        terms: dict[str, Any] = dict.fromkeys(TASK_SETTINGS)
        terms |= {"bins": size // 2, "levels": size, "bounds": (0.0, 1.0)}
        terms["classes"] = [f"class {c}" for c in range(k)] if k * k == size else ()
        terms["question"] = names.get(size, CLASS if k * k == size else CALIBRATION)
        return make_task(terms, epsilon)

    def check_task(self, task: Any) -> None:
        """Refuse an encoder with other parameters than its own."""
        if not {*task.params} <= {"omega"}:
            raise UserError("params of an encoder hold omega, or nothing.")
        task.noise()

    def draw(self, task: Any, data: ClientData, entropy: Entropy) -> Columns:
        """Return codes of words (n,), which stand in ``labels``."""
        codes = super().draw(task, data, entropy)
        if task.places:
            nowhere = np.zeros(len(data.labels), dtype=np.int64)
            place = nowhere if data.candidate is None else data.candidate
            codes[PLACE] = np.asarray(place, dtype=np.int64)
        return codes

    def collect(
        self, task: Any, messages: Columns, times: ArrayLike | None = None
    ) -> Columns:
        """Return the counts of each place and code; each came so many ``times``."""
        mechanism = task.noise()
        code = np.asarray(messages[CODE]).astype(mechanism.dtype)
        places = messages.get(PLACE, np.zeros(len(code), dtype=np.int64))
        rows = np.column_stack([places, code.reshape(len(code), -1)])
        distinct, which = np.unique(rows, axis=0, return_inverse=True)
        weights = np.ones(len(rows)) if times is None else np.asarray(times)
        counts = np.bincount(which.ravel(), weights=weights, minlength=len(distinct))
        codes = distinct[:, 1:].reshape(len(distinct), *code.shape[1:])
        return {
            PLACE: distinct[:, 0].astype(np.int64),
            CODE: codes.astype(mechanism.dtype),
            "count": counts.astype(np.int64),
        }

    def word(self, task: Any, outcome: Outcome) -> int:
        """Return the word of an outcome before noise; see `answer_word`."""
        return answer_word(task, outcome)

    def read_outcomes(
        self, task: Any, table: Path
    ) -> tuple[dict[str, tuple[int | None, Outcome]], list[str]]:
        """Return group and outcome of each id of a table, and notes; see `home`."""
        from curvote.systems.monitor.home import read_outcomes

        return read_outcomes(table, task)

    def model_answer(self, model: Path, record: Path) -> tuple[str, float]:
        """Return what a model at home answers about a record, and how sure it is."""
        from curvote.systems.monitor.home import model_answer

        return model_answer(model, record)

    def stated_probability(self, task: Any, probability: float) -> float | None:
        """Return how sure the model was where the question is of calibration."""
        return probability if task.question == CALIBRATION else None

    def describe_answer(self, task: Any, about: int | str | None) -> str:
        """Return words for what is sent, as ``answer (right or wrong)``."""
        q = task.asked_question
        parts = {
            RIGHT: "whether the model was right",
            CLASS: f"the model's class and yours, of {format_names(task.classes)}",
            CALIBRATION: "how sure the model was, and whether it was right",
            ERROR: "by how much the model was wrong",
            VERSUS: "which of two models was right",
        }
        words = [parts[q.name]]
        if q.groups:
            words.append(f"a group of {format_names(q.groups)}")
        if task.places and about is not None:
            words.append(f"as one of {task.places[int(about)]}, which is not hidden")
        return f"answer ({', '.join(words)})"


MESSAGES: Final = {ASKS: Answer()}


def question_of(terms: Mapping[str, Any]) -> Question:
    """Return the question that settings state."""
    name = terms["question"]
    bounds = terms["bounds"]
    return Question(
        name,
        classes=tuple(terms["classes"]) if name == CLASS else (),
        bins=terms["bins"],
        bounds=tuple(bounds) if name == ERROR and bounds else None,
        levels=terms["levels"] if name == ERROR else None,
        groups=tuple((terms["group"] or {}).get("private", ())),
    )


def make_task(terms: Mapping[str, Any], epsilon: float, number: int = 1) -> Task:
    """Return the task of settings, with the best encoder for what is asked."""
    question = question_of(terms)
    encoder = question.encoder(epsilon)
    question = question.resolved(epsilon)
    models = terms["model"]
    return Task(
        Classes(terms["classes"] or NO_CLASSES),
        epsilon,
        question.name,
        encoder.name,
        encoder.params,
        question.words,
        question.groups,
        tuple((terms["group"] or {}).get("public", ())),
        question.bounds,
        None if models is None else [models] if isinstance(models, str) else [*models],
        number=number,
    )


def task_of(inputs: Inputs, params: Params) -> Task:
    """Return the task of a window, before it opens."""
    terms = {name: params[f"monitor.{name}"] for name in TASK_SETTINGS}
    return make_task(terms, params["epsilon"], params.get("number", 1))


# What a task says; all else of a watch may change while it goes on.
TASK_SETTINGS: Final = (
    *("question", "model", "classes", "bins", "bounds", "levels", "group"),
)


def audited_tasks(settings: PipelineSettings, read: Any) -> Iterator[Task]:
    """Yield the task of each level of epsilon."""
    terms = settings.monitor.model_dump(mode="json")
    for epsilon in settings.epsilon:
        yield make_task(terms, epsilon)


def answer_word(task: Task, outcome: Outcome) -> int:
    """Return the word of what a model answered and what is true, before noise.

    Whatever the texts say, there is a word: a class that is none counts as the first, a
    number that is none as the low bound; 1.0 is 1. So what is sent, and that it is,
    tells nothing of them but the word. UserError: another number of answers than the
    question takes, or a group that is none.
    """
    q, answered, wanted = task.asked_question, outcome.answered, 1
    if q.name == VERSUS:
        wanted = 2
    else:  # a comma in an answer must make no difference
        answered = (",".join(answered),)
    if len(answered) != wanted:
        raise UserError(f"the question is about {wanted} models, not {len(answered)}.")
    if (q.name == CALIBRATION) != (outcome.probability is not None):
        raise UserError("a probability goes with a question of calibration alone.")
    if bool(q.groups) != (outcome.group is not None):
        names = format_names(q.groups) or "none, as there are no private ones"
        raise UserError(f"--group must name one of {names}.")
    place = None
    if outcome.group is not None:
        place = [q.groups.index(validate.one_of(q.groups, group=outcome.group))]
    outputs: Any = [*map(normalise_id, answered)]
    actual: Any = normalise_id(outcome.truth)
    if q.name == CLASS:
        outputs = [_class_place(q, text) for text in outputs]
        actual = _class_place(q, actual)
    elif q.name == CALIBRATION:
        actual, outputs = outputs[0] == actual, [outcome.probability]
    elif q.name == ERROR:
        outputs, actual = [_number(text) for text in outputs], _number(actual)
        if not np.isfinite([*outputs, actual]).all():
            outputs, actual = [(q.bounds or (0.0,))[0]], 0.0
    predicted = np.array([outputs]) if q.name == VERSUS else np.array(outputs)
    return int(q.word(np.array([actual]), predicted, place, SystemEntropy())[0])


def _class_place(question: Question, text: str) -> int:
    names = [*map(normalise_id, question.classes)]
    return names.index(text) if text in names else 0


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
