"""Subjects of the audit, and the row of verdicts on each."""

import decimal
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import Entropy
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.checks import examples
from curvote.mechanisms.alibi import ONE_HOT_STEPS, Alibi
from curvote.mechanisms.frequency_oracles import SubsetSelection
from curvote.mechanisms.joint_box import JointBox
from curvote.mechanisms.labels import SupportMechanism
from curvote.mechanisms.privunit import PrivUnit
from curvote.messages.message import ClientData

MOST_DIGITS = 80
SHORT_DIGITS = 40
BROKEN = "broken."
GOOD = {"pass", "caught"}
# What is wrong by the name of each check; None for nothing.
Findings = dict[str, str | None]
Rng = np.random.Generator
# The number of candidates depends on the words, and has one law for all inputs.
REJECTING = (PrivUnit, JointBox, SubsetSelection)
_THRESHOLDS = ("threshold", "own_threshold", "other_threshold")
_PARTS = ("window", "scalar", "part", "piecewise", "duchi", "label", "features")


@dataclass(frozen=True)
class Row:
    """The verdict on one subject at one budget.

    ``claimed``, ``exact`` and ``lower_bound`` are epsilons; ``exact`` is the loss of
    the declared law, ``lower_bound`` holds with probability ``confidence`` and comes
    from draws alone. ``verdict`` is pass or violated, of a broken one caught or missed.
    ``seed`` repeats the row.
    """

    mechanism: str
    params: Mapping[str, Any]
    claimed: float
    delta: float
    exact: float | None
    exact_ratio: str | None
    lower_bound: float | None
    confidence: float | None
    verdict: str
    checks: Mapping[str, str]
    caught_by: tuple[str, ...]
    seed: int

    @property
    def broken(self) -> bool:
        """Whether the subject is a broken twin, which must be caught."""
        return self.mechanism.startswith(BROKEN)

    @property
    def good(self) -> bool:
        """Whether the verdict is pass, or caught for a broken twin."""
        return self.verdict in GOOD

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain JSON values."""
        facts = asdict(self)
        params = {name: _to_plain(value) for name, value in self.params.items()}
        return facts | {"params": params, "caught_by": list(self.caught_by)}


def _to_plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def ratio_text(ratio: Fraction | None) -> str | None:
    """Return the fraction as text, beyond 80 digits its value in 40."""
    if ratio is None:
        return None
    parts = ratio.numerator, ratio.denominator
    # An integer of 80 digits has at most 266 bits; long ones are never written out.
    if max(part.bit_length() for part in parts) <= MOST_DIGITS * 3.32:
        return f"{parts[0]}/{parts[1]}"
    context = decimal.Context(prec=SHORT_DIGITS, Emax=decimal.MAX_EMAX)
    value = context.divide(Decimal(parts[0]), Decimal(parts[1]))
    return f"{value} ({SHORT_DIGITS} digits)"


@dataclass(frozen=True)
class Loss:
    """The declared law's loss as a number, and as a fraction where it is one."""

    log: float
    ratio: Fraction | None = None


@dataclass(frozen=True, eq=False)
class OddInput:
    """An input that must be refused, or give the very bytes of its ``twin``.

    ``twin`` is None where only a refusal will do.
    """

    name: str
    value: Any
    twin: Any = None


class Subject(ABC):
    """Something that releases one output for one sender's input, at a stated budget.

    An input, a record or a table of them, is opaque to the audit; neighbours are any
    two inputs, or tables that differ in a record. The ``budget`` is what is claimed of
    one output for each record that it is about. ``mechanism`` is what hides the input,
    None where that is no one value. What is sent is the ``message`` about a ``task``
    that asks for it, of a ``ClientData``, unless a kind of subjects says otherwise.
    """

    name: str
    params: Mapping[str, Any]
    budget: Budget
    mechanism: Any
    task: Any
    message: Any
    # Drawn for one input: wide outputs get fewer draws than were asked for.
    most_numbers: ClassVar[int] = 1_600_000
    # Clients with inputs of their own, where an output has few numbers, and many.
    crowd: ClassVar[tuple[int, int]] = (200_000, 70_000)
    # Whether one call draws for many clients, who may then share a path or noise.
    batched: ClassVar[bool] = True

    @property
    def stands_for(self) -> str:
        """The shipped name with the same known answers; "" for none."""
        return ""

    @property
    def row_params(self) -> Mapping[str, Any]:
        """The parameters, and the law of the worst pair of labels, for the row."""
        return {**self.params, **pair_details(self.mechanism)}

    @property
    def deciding(self) -> tuple[int, ...]:
        """The declared words at which the output changes."""
        return thresholds(self.mechanism)

    @property
    def rejects(self) -> bool:
        """Whether candidates are drawn until one fits the input."""
        return isinstance(self.mechanism, REJECTING)

    @abstractmethod
    def inputs(self, rng: Rng) -> list[Any]:
        """Return some inputs, those furthest apart first."""

    def draw(self, x: Any, n: int, entropy: Entropy) -> Any:
        """Return the outputs of ``n`` clients that all hold ``x``, in one call."""
        return self.send(_repeat_client(x, n), entropy)

    @abstractmethod
    def many(self, n: int, rng: Rng) -> Any:
        """Return ``n`` clients with inputs from the whole domain."""

    def send(self, many: Any, entropy: Entropy) -> Any:
        """Return the outputs of such clients, a row each, in one call."""
        return self.message.draw(self.task, many, entropy)

    def part(self, many: Any, rows: slice) -> Any:
        """Return some rows of such clients."""
        return many.subset(rows)

    def together(self, outputs: list[Any]) -> Any:
        """Return the outputs of several calls as those of one call."""
        return {name: np.concatenate([o[name] for o in outputs]) for name in outputs[0]}

    @abstractmethod
    def places(self, many: Any) -> FloatArray:
        """Return the clients' inputs as numbers (n, k)."""

    def view(self, outputs: Any) -> FloatArray:
        """Return the outputs' numbers side by side, one row a client, (n, k)."""
        numbers = [v for v in map(np.asarray, outputs.values()) if v.dtype.kind != "O"]
        return np.hstack([v.astype(np.float64).reshape(len(v), -1) for v in numbers])

    def input_row(self, x: Any) -> FloatArray | None:
        """Return the input in the form of an output's row (k,), or None."""
        del x
        return None

    def log_ratio(self, x: Any, x2: Any, outputs: Any) -> FloatArray:
        """Return the declared ln P(output | x) - ln P(output | x2), (n,)."""
        n = len(next(iter(outputs.values())))
        pair = _repeat_client(x, n), _repeat_client(x2, n)
        with np.errstate(divide="ignore", invalid="ignore"):
            losses: FloatArray = self.message.log_ratio(self.task, *pair, outputs)
        return losses

    def possible(self, outputs: Any) -> NDArray[np.bool_]:
        """Return a mask of the outputs that the declared law can give, (n,)."""
        mask: NDArray[np.bool_] = self.message.possible_mask(self.task, outputs)
        return mask

    def loss(self) -> Loss:
        """Return the loss of the declared law, of all parts of an output."""
        return Loss(self.message.max_privacy_loss(self.task))

    @abstractmethod
    def residuals(self, many: Any, outputs: Any, rng: Rng) -> FloatArray | None:
        """Return outputs with the inputs taken out, (n, k)."""

    def law_gap(self, x: Any, outputs: Any, alpha: float) -> str | None:
        """Return how ``outputs`` depart from the declared law of ``x``.

        Wrong with probability ``alpha`` at most. None here: the law has no such form.
        """
        del x, outputs, alpha
        return None

    @abstractmethod
    def odd_inputs(self) -> list[OddInput]:
        """Return invalid or unusual inputs that must be handled."""

    def release(self, given: Any, entropy: Entropy) -> bytes:
        """Release an odd input or its twin, and return the bytes."""
        return self.view(self.message.draw(self.task, given, entropy)).tobytes()

    @abstractmethod
    def own_checks(self) -> Findings:
        """Return the findings of checks of this kind of subject alone."""


@dataclass(frozen=True, eq=False)
class SentSubject(Subject):
    """The complete message that one sender draws for a task.

    An input is a ``ClientData`` of its n >= 1 records; neighbours differ in one of
    them. Here n is 1, and many clients are the rows of one ``ClientData``: local
    privacy. A server has a table (`TableSubject`).
    """

    task: Any
    message: Any
    name: str
    params: Mapping[str, Any]
    budget: Budget

    @property
    def stands_for(self) -> str:
        """The message, where it is that of the small task in ``examples``."""
        question, k = (self.task.protocol, self.message.name), self.task.label_count
        example = examples.example_task(*question, self.task.epsilon, k)
        same = example.digest() == self.task.digest()
        return examples.message_name(*question, k) if same else ""


def _repeat_client(x: ClientData, n: int) -> ClientData:
    return x.subset(np.zeros(n, dtype=np.int64))


def thresholds(part: Any) -> tuple[int, ...]:
    """Return the integers that samplers compare words with."""
    values = (getattr(part, name, None) for name in _THRESHOLDS)
    integers = {value for value in values if isinstance(value, int)}
    parts = (getattr(part, name) for name in _PARTS if hasattr(part, name))
    return tuple(sorted(integers.union(*map(thresholds, parts))))


def pair_details(mechanism: Any) -> dict[str, str]:
    """Return the details of a label mechanism's worst pair for its row."""
    if isinstance(mechanism, SupportMechanism):
        chances = zip(("1 0", "0 1"), mechanism.pair(), strict=True)
        return {"pair": ", ".join(f"{bits_}: {ratio_text(p)}" for bits_, p in chances)}
    if isinstance(mechanism, Alibi):
        rate = mechanism.noise.rate * ONE_HOT_STEPS
        return {"pair": f"1 0: {rate:.9g}, 0 1: {-rate:.9g} in each logarithm"}
    return {}
