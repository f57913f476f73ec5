"""Task description that a server publishes, and its strict form as JSON.

A task comes from somebody else, so types, sizes and ranges are judged here, strictly,
and alone: no record is read before. The limits also bound whatever is computed later.
With T <= 2^16, d <= 2^11 and a curve's values at most ``LARGEST_CURVE_VALUE``, a
coefficient is at most 2^16 LARGEST LARGEST_VALUE < 1e32, a standardised one 1e6 times
that, and an inner product with a Gram matrix, a whitening or a candidate 2^11 LARGEST
times the one before: all stay below 1e75, so that no record overflows and none is told
from another.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pydantic
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.curves.basis import MAX_DERIVATIVE
from curvote.curves.encoding import Encoding
from curvote.wire.strict_json import StrictForm, canonical_json, read_form

Array = NDArray[np.float64]

LARGEST_NUMBER = 1e15  # of a number in a task
LARGEST_CURVE_VALUE = 1e12  # of a curve: a client's values beyond it stand for it
LARGEST_EPSILON = 1000.0
SMALLEST_SCALE = 1e-6
MOST_POINTS = 1 << 16
MOST_COEFFICIENTS = 1 << 11
MOST_CANDIDATES = 1 << 16
MOST_CLASSES = 1 << 10
MOST_CHANNELS = 1 << 6
MOST_NUMBERS = 1 << 22  # in one matrix
MOST_ORDER = 16  # of B-splines
MOST_PARAMETERS = 16
LONGEST_WORD = 60
# Between a label and the private words that are one class with it: none of the marks
# that part words of a list (`curvote.messages.answer`).
BESIDE = " + "


def _check_number(value: object) -> int | float:
    """Return a number as it was written: 1 and 1.0 differ in a digest."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("it must be a number")
    if not abs(value) <= LARGEST_NUMBER:
        raise ValueError(f"it must be finite and at most {LARGEST_NUMBER:g} in size")
    return value


def _check_epsilon(value: object) -> int | float:
    epsilon = _check_number(value)
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise ValueError(f"it must be above 0 and at most {LARGEST_EPSILON:g}")
    return epsilon


def _check_word(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_WORD:
        raise ValueError(f"it must be a text of 1 to {LONGEST_WORD} characters")
    if not value.isprintable() or value != value.strip():
        raise ValueError("it must be plain text: no control characters, no margins")
    return value


def _check_array(value: object) -> Array:
    """Return the numbers in a list, (n,), or in equal lists, (m, n)."""
    if not isinstance(value, list) or not value:
        raise ValueError("it must be a list of numbers, or of such lists")
    rows = value if isinstance(value[0], list) else [value]
    if any(not isinstance(row, list) or len(row) != len(rows[0]) for row in rows):
        raise ValueError("its rows must be lists of one length")
    if len(rows) * len(rows[0]) > MOST_NUMBERS:
        raise ValueError(f"it holds more than {MOST_NUMBERS} numbers")
    if not {type(number) for row in rows for number in row} <= {int, float}:
        raise ValueError("it must hold numbers only")
    try:
        array = np.array(value, dtype=np.float64)
    except OverflowError:
        array = np.array([np.inf])
    if not (np.abs(array) <= LARGEST_NUMBER).all():
        most = f"at most {LARGEST_NUMBER:g} in size"
        raise ValueError(f"its numbers must be finite and {most}")
    return array


def _array_check(ndim: int) -> Callable[[object], Array]:
    def check(value: object) -> Array:
        array = _check_array(value)
        if array.ndim != ndim or not array.size:
            kind = "one list" if ndim == 1 else "lists"
            raise ValueError(f"it must be {kind} of numbers")
        return array

    return check


def _check_constant_form(value: object) -> Array:
    """Return a constant of all coordinates, (), or one each, (d,)."""
    if isinstance(value, list):
        return _array_check(1)(value)
    return np.array(_check_number(value), dtype=np.float64)


def _check_parameter(value: object) -> object:
    """Return a mechanism's parameter as it was written."""
    if isinstance(value, list):
        _check_array(value)
        return value
    return _check_word(value) if isinstance(value, str) else _check_number(value)


Number = Annotated[int | float, pydantic.PlainValidator(_check_number)]
Word = Annotated[str, pydantic.PlainValidator(_check_word)]
Vector = Annotated[Array, pydantic.PlainValidator(_array_check(1))]
Matrix = Annotated[Array, pydantic.PlainValidator(_array_check(2))]
Constant = Annotated[Array, pydantic.PlainValidator(_check_constant_form)]
Parameter = Annotated[Any, pydantic.PlainValidator(_check_parameter)]
Epsilon = Annotated[int | float, pydantic.PlainValidator(_check_epsilon)]
MechanismParams = Annotated[
    dict[Word, Parameter], pydantic.Field(max_length=MOST_PARAMETERS)
]


class EncodingForm(StrictForm):
    """JSON form of an encoding: basis, matrices, rescaling and constants."""

    basis: Word
    size: Annotated[int, pydantic.Field(ge=1, le=MOST_POINTS)]
    order: Annotated[int, pydantic.Field(ge=1, le=MOST_ORDER)]
    domain: Vector
    matrix: Matrix
    gram: Matrix
    rescale: Word
    constants: Annotated[dict[Word, Constant], pydantic.Field(max_length=2)]
    judge: Word
    derivative: Annotated[int, pydantic.Field(ge=0, le=MAX_DERIVATIVE)] = 0
    channels: list[Word] = pydantic.Field(default=[], max_length=MOST_CHANNELS)
    irregular: Literal["smooth"] | None = None

    @pydantic.model_validator(mode="after")
    def _check_shapes(self) -> EncodingForm:
        d, points = self.matrix.shape
        if d > MOST_COEFFICIENTS or points > MOST_POINTS:
            most = f"{MOST_COEFFICIENTS} by {MOST_POINTS}"
            raise ValueError(f"matrix is {d} by {points}; at most {most}")
        if self.gram.shape != (d, d):
            raise ValueError(f"gram must be {d} by {d}, as the matrix has {d} rows")
        if self.domain.shape != (2,) or not self.domain[0] <= self.domain[1]:
            raise ValueError("domain must be two increasing numbers")
        if len({*map(confusable_form, self.channels)}) < len(self.channels):
            raise ValueError("channels must be different words")
        if max(1, len(self.channels)) > min(d, points):
            raise ValueError(f"matrix is {d} by {points}, too small for its channels")
        for name, value in self.constants.items():
            if value.shape not in ((), (1,), (d,)):
                raise ValueError(f"{name} must be one number, or one for each of {d}")
            if name == "scale" and not (value >= SMALLEST_SCALE).all():
                raise ValueError(f"scale must be at least {SMALLEST_SCALE:g}")
        return self


class CandidatesForm(StrictForm):
    """JSON form of the candidates: coef (B, d), intercept (B,)."""

    coef: Matrix
    intercept: Vector

    @pydantic.model_validator(mode="after")
    def _check_shapes(self) -> CandidatesForm:
        count = len(self.coef)
        if count > MOST_CANDIDATES or self.intercept.shape != (count,):
            raise ValueError(
                f"coef has {count} rows and intercept {len(self.intercept)} numbers;"
                f" they must be equally many, at most {MOST_CANDIDATES}"
            )
        return self


# Cyrillic and Greek letters that look like Latin ones, small or capital, and those. Of
# the many more that Unicode lists (UTS 39), whole alphabets that people write.
_LOOKALIKES = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443"
    "\u0445\u0455\u0456\u0458\u04bb\u0501\u04cf\u051b\u051d\u0475"
    "\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf"
    "\u03c1\u03c4\u03c5\u03c7",
    "abekmhopctyxsijhdlqwvabezhikmnoptyx",
)


def confusable_form(word: str) -> str:
    """Return a text folded so that look-alike texts become equal."""
    return unicodedata.normalize("NFKC", word).casefold().translate(_LOOKALIKES)


class TaskForm(StrictForm):
    """JSON form of what every task states; a kind of task adds its payload's form."""

    format: int
    protocol: Word
    asks: Word
    number: Annotated[int, pydantic.Field(ge=1, le=2**53)]
    classes: Annotated[
        list[Word], pydantic.Field(min_length=2, max_length=MOST_CLASSES)
    ]

    def refuse_lookalikes(self) -> None:
        """Refuse (ValueError) classes that look alike."""
        if len({*map(confusable_form, self.classes)}) < len(self.classes):
            raise ValueError("classes must be different words")


class AnyTask(ABC):
    """Base of tasks: what each states, and its document, read strictly and named.

    A kind of task, a dataclass, declares the ``form`` of its documents, the number
    ``FORMAT`` of that form, and in ``REFUSAL`` the words for a document of another
    number. ``protocol`` is the system that it belongs to, ``asks`` the message that it
    asks for, ``number`` how often the same question was asked before, from 1 on,
    ``classes`` are in the publisher's words. ``epsilon`` is what one sender spends; a
    word says why it is none. ``candidates`` are voted on, None if there is no vote.
    """

    FORMAT: ClassVar[int]
    REFUSAL: ClassVar[str]
    form: ClassVar[type[TaskForm]]

    protocol: str
    asks: str
    number: int
    classes: Classes
    epsilon: float | str
    candidates: Candidates | None = None

    @property
    @abstractmethod
    def mechanism(self) -> str:
        """The mechanism that noises the message."""

    @property
    def label_count(self) -> int:
        """The number of labels, of which a message that is about one hides which."""
        return len(self.classes)

    @property
    def subject_count(self) -> int | None:
        """The number of subjects, of which an invitation names one; None: of none."""
        return None if self.candidates is None else len(self.candidates.coef)

    @abstractmethod
    def cost(self, n: int = 1) -> Budget:
        """Return the cost of a message for each of the ``n`` records."""

    def for_server(self, server: str) -> Self:
        """Return the task as it is for one of the named senders.

        A task that names none is a UserError.
        """
        raise UserError(
            f"the invitation is for {validate.format_value(server)}, but the task asks"
            " nobody by name."
        )

    @abstractmethod
    def payload(self) -> dict[str, Any]:
        """Return the document's own fields as plain JSON values."""

    def to_json(self) -> dict[str, Any]:
        """Return the document as plain JSON values."""
        return {
            "format": self.FORMAT,
            "protocol": self.protocol,
            "asks": self.asks,
            "number": self.number,
            "classes": list(self.classes),
            **self.payload(),
        }

    @classmethod
    def from_json(cls, text: Mapping[str, Any]) -> Self:
        """Build the task that `to_json` wrote; anything else is a UserError.

        Judged strictly: unknown keys, other types, NaN, numbers and sizes out of
        range. Whether a client may obey it is `curvote.messages.answer`'s.
        """
        version = text.get("format") if isinstance(text, dict) else cls.FORMAT
        if (type(version), version) != (int, cls.FORMAT):
            raise UserError(
                f"task format is {validate.format_value(version)}; {cls.REFUSAL}"
                f" {cls.FORMAT}."
            )
        values = dict(read_form(cls.form, text, "not a task: "))
        del values["format"]
        return cls(**cls.read_payload(values))

    @classmethod
    def read_payload(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of the task that the values of a checked form stand for."""
        return values

    def digest(self) -> str:
        """Return the SHA-256 that names this task."""
        return hashlib.sha256(canonical_json(self.to_json())).hexdigest()


@dataclass(frozen=True, eq=False)
class Candidates:
    """The B weak classifiers of a vote: coef (B, d), intercept (B,)."""

    coef: Array
    intercept: Array

    def __post_init__(self) -> None:
        coef = validate.finite(coef=self.coef)
        intercept = validate.finite(intercept=self.intercept)
        if coef.ndim != 2 or intercept.shape != (len(coef),):
            raise UserError(
                f"candidates have coef of shape {coef.shape} and intercept of shape"
                f" {intercept.shape}; they must be (B, d) and (B,)."
            )
        object.__setattr__(self, "coef", coef)
        object.__setattr__(self, "intercept", intercept)


class CurveForm(TaskForm):
    """JSON form of a task about curves as `Task.to_json` writes it."""

    format: Literal[1]
    epsilon: Epsilon
    mechanism: Word
    params: MechanismParams
    label_share: Literal["equal"] | Number
    encoding: EncodingForm
    candidates: CandidatesForm | None

    @pydantic.model_validator(mode="after")
    def _check_consistency(self) -> CurveForm:
        self.refuse_lookalikes()
        if not (self.label_share == "equal" or 0 < float(self.label_share) < 1):
            raise ValueError("label_share must be equal, or a number in (0, 1)")
        d = len(self.encoding.matrix)
        if self.candidates is not None and self.candidates.coef.shape[1] != d:
            raise ValueError(f"candidates must be of {d} numbers, as the encoding is")
        return self


@dataclass(frozen=True)
class Task(AnyTask):
    """One round of a protocol: what is asked of a client; every field is public.

    Parameters
    ----------
    encoding : Encoding
        How a record becomes numbers.
    classes : Classes
        The labels, in the publisher's words.
    epsilon : float
        What a client spends on the one message that is asked for.
    protocol : str
        The system that the task belongs to.
    asks : str
        The message that it asks for.
    mechanism : str, default=""
        What noises it.
    label_share : "equal" or float in (0, 1), default="equal"
        The part of the budget that the label gets.
    params : mapping, default={}
        The parameters of the mechanism, which a task has by the time it is published.
    number : int, default=1
        Counts the times that the same was asked.
    candidates : Candidates or None, default=None
        What the message is about, where it is a vote.

    Examples
    --------
    >>> import numpy as np
    >>> from curvote import DirectClassifier
    >>> X, y = np.tile([[-0.5], [0.5]], (100, 1)), np.tile(["no", "yes"], 100)
    >>> task = DirectClassifier(epsilon=2).fit(X, y).task_
    >>> print(task.protocol, task.asks, *task.classes, task.budget)
    direct report no yes epsilon 2
    >>> Task.from_json(task.to_json()).digest() == task.digest()
    True
    """

    FORMAT = 1
    REFUSAL = "this version reads"
    form = CurveForm

    encoding: Encoding
    classes: Classes
    epsilon: float
    protocol: str
    asks: str
    mechanism: str = ""
    label_share: float | str = "equal"
    params: Mapping[str, Any] = field(default_factory=dict)
    number: int = 1
    candidates: Candidates | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", Classes(self.classes))

    @property
    def budget(self) -> Budget:
        """The budget of one message: epsilon, and the mechanism's delta."""
        return Budget(self.epsilon, float(self.params.get("delta", 0.0)))

    def cost(self, n: int = 1) -> Budget:
        """Return the budget of a message, which is about one record."""
        validate.at_least(1, n=n)
        return self.budget

    def payload(self) -> dict[str, Any]:
        """Return the fields that a task about curves adds."""
        candidates = self.candidates and {
            "coef": self.candidates.coef.tolist(),
            "intercept": self.candidates.intercept.tolist(),
        }
        return {
            "epsilon": self.epsilon,
            "mechanism": self.mechanism,
            "params": dict(self.params),
            "label_share": self.label_share,
            "encoding": self.encoding.to_json(),
            "candidates": candidates,
        }

    @classmethod
    def read_payload(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with the encoding and the candidates built."""
        encoding = Encoding.from_json(values["encoding"].model_dump())
        candidates = values["candidates"] and Candidates(**dict(values["candidates"]))
        return values | {"encoding": encoding, "candidates": candidates}

    def digest(self) -> str:
        """Return the SHA-256 that names this task: of its text with spaces."""
        text = json.dumps(self.to_json(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()
