"""Mechanisms as subjects: one value, one label or one record."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray
from curvote.checks import examples, loss_checks, mechanism_checks, residuals
from curvote.checks.subject import Finding, Loss, OddInput, Subject
from curvote.checks.word_checks import thresholds
from curvote.mechanisms import alibi, base, frequency_oracles, joint_box
from curvote.mechanisms.factory import make, mechanism_class
from curvote.mechanisms.labels import PackedMechanism
from curvote.mechanisms.privunit import OneOf, PrivUnit
from curvote.mechanisms.randomized_response import BinaryRR

# The number of candidates depends on the words, and has one law for all inputs.
REJECTING = (PrivUnit, joint_box.JointBox, frequency_oracles.SubsetSelection)


@dataclass(frozen=True, eq=False)
class MechanismSubject(Subject):
    """One mechanism; an input is the array of one client: (), () or (d,)."""

    mechanism: base.Mechanism
    name: str
    params: Mapping[str, Any]
    budget: Budget
    extra: tuple[FloatArray, ...] = ()

    @property
    def said(self) -> Mapping[str, Any]:
        """The parameters, and the law of the worst pair of labels."""
        return {**self.params, **mechanism_checks.pair_details(self.mechanism)}

    @property
    def stands_for(self) -> str:
        """The shipped mechanism with the same construction."""
        name, budget = self.mechanism.name, self.budget
        if not isinstance(self.mechanism, mechanism_class(name)):
            return ""
        kind = mechanism_class(name)
        usual = examples.mechanism_params(kind, budget.epsilon, examples.MORE)
        same = all(usual.get(k) == value for k, value in self.params.items())
        return name if same else ""

    @property
    def deciding(self) -> tuple[int, ...]:
        """The thresholds of the mechanism and its parts."""
        return thresholds(self.mechanism)

    @property
    def rejects(self) -> bool:
        """Whether the mechanism rejects candidates by input."""
        return isinstance(self.mechanism, REJECTING)

    def inputs(self, rng: np.random.Generator) -> list[FloatArray]:
        """Return labels; or ends, middle, a random and an outlying place."""
        mechanism = self.mechanism
        if isinstance(mechanism, base.LabelMechanism):
            return [np.array(float(x)) for x in range(min(mechanism.n_classes, 4))]
        low, high, shape = _input_domain(mechanism)
        places = [np.full(shape, value) for value in (low, high, (low + high) / 2)]
        places.append(rng.uniform(low, high, shape))
        places.append(np.full(shape, high + 2 * (high - low)))  # to be clipped
        if shape:
            places.insert(3, np.where(np.arange(shape[0]) == 0, high, low))
        if isinstance(mechanism, OneOf):  # the others are mostly of the first class
            up = np.full((1, mechanism.length), mechanism.high)
            last = np.array([mechanism.n_classes - 1])
            places.insert(1, mechanism.join_records(last, up).ravel())
        accepted = [x for x in places if mechanism_checks.accepts(mechanism, x)]
        return [*self.extra, *accepted]

    def draw(self, x: FloatArray, n: int, entropy: Entropy) -> NDArray[Any]:
        """Return the outputs of ``n`` clients that all hold ``x``."""
        return self.send(repeat_input(x, n), entropy)

    def send(self, many: FloatArray, entropy: Entropy) -> NDArray[Any]:
        """Return the outputs of clients who hold ``many``, a row each."""
        return self.mechanism.randomize(many, entropy)

    def many(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return labels, or numbers from everywhere in the domain and beyond it."""
        if isinstance(self.mechanism, base.LabelMechanism):
            return rng.integers(self.mechanism.n_classes, size=n).astype(np.float64)
        _, _, shape = _input_domain(self.mechanism)
        numbers = residuals.test_values((n, *shape), rng)
        binary = isinstance(self.mechanism, BinaryRR)
        return np.where(numbers < 0, -1.0, 1.0) if binary else numbers

    def part(self, many: FloatArray, rows: slice) -> FloatArray:
        """Return some rows."""
        return many[rows]

    def together(self, outputs: list[NDArray[Any]]) -> NDArray[Any]:
        """Return the outputs of several calls as those of one."""
        return np.concatenate(outputs)

    def places(self, many: FloatArray) -> FloatArray:
        """Return the numbers themselves."""
        return many.reshape(len(many), -1)

    def residuals(
        self, many: FloatArray, outputs: NDArray[Any], rng: np.random.Generator
    ) -> FloatArray | None:
        """Return outputs with the inputs taken out, by the mechanism's declared law."""
        return residuals.output_residuals(self.mechanism, many, outputs, rng)

    def view(self, outputs: NDArray[Any]) -> FloatArray:
        """Return numbers, codes, or the bits of packed codes, (n, k)."""
        if isinstance(self.mechanism, PackedMechanism):
            bits = np.unpackbits(outputs, axis=1, count=self.mechanism.n_classes)
            return bits.astype(np.float64)
        return np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)

    def shown(self, x: FloatArray) -> FloatArray | None:
        """Return the value, the record, the label, or its one-hot bits."""
        if isinstance(self.mechanism, PackedMechanism | alibi.Alibi):
            return np.asarray(np.arange(self.mechanism.n_classes) == x, dtype=float)
        return np.atleast_1d(x)

    def log_ratio(
        self, x: FloatArray, x2: FloatArray, outputs: NDArray[Any]
    ) -> FloatArray:
        """Return the mechanism's declared loss for each output."""
        first, second = (repeat_input(value, len(outputs)) for value in (x, x2))
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.mechanism.log_ratio(first, second, outputs)

    def possible(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return a mask of the possible outputs."""
        return self.mechanism.possible_mask(outputs)

    def loss(self) -> Loss:
        """Return the loss by the mechanism's integers."""
        mechanism = self.mechanism
        return Loss(mechanism.worst_log_ratio(), mechanism.worst_ratio())

    def law_gap(self, x: FloatArray, outputs: NDArray[Any], alpha: float) -> str | None:
        """Compare with the declared channel or distribution function."""
        mechanism = self.mechanism
        if isinstance(mechanism, base.FiniteMechanism):
            shares = mechanism.probabilities(x)
            return loss_checks.share_gap(outputs, mechanism.outputs, shares, alpha)
        if isinstance(mechanism, base.LabelMechanism):
            named = residuals.output_distribution(mechanism, np.atleast_1d(x))
            if named:
                codes = residuals.code_numbers(mechanism, outputs)
                return loss_checks.share_gap(codes, named[0], named[1][0], alpha)
            if not isinstance(mechanism, PackedMechanism):
                return None
            labels = repeat_input(x, len(outputs))
            outcomes = mechanism_checks.pair_outcomes(mechanism, labels, outputs)
            shares = mechanism_checks.outcome_shares(mechanism)
            return loss_checks.share_gap(outcomes, np.arange(4.0), shares, alpha)
        if isinstance(mechanism, base.ScalarMechanism):
            return loss_checks.distribution_gap(mechanism, x, outputs, alpha)
        return None

    def own_checks(self) -> list[Finding]:
        """Check the channel and the sampler by brute force."""
        return [
            mechanism_checks.check_channel(self.mechanism),
            mechanism_checks.check_pair(self.mechanism),
            mechanism_checks.check_sampler(self.mechanism),
            mechanism_checks.check_primitives(),
        ]

    def odd_inputs(self) -> list[OddInput]:
        """Return invalid values, and values with a twin."""
        record = self.inputs(np.random.default_rng(0))[-1]
        return mechanism_checks.odd_inputs_of(self.mechanism, record)

    def release(self, given: Any, entropy: Entropy) -> bytes:
        """Return the bytes that the mechanism makes of ``given``."""
        return np.asarray(self.send(given, entropy)).tobytes()


def repeat_input(x: FloatArray, n: int) -> FloatArray:
    """Return ``n`` clients that all hold ``x``."""
    return np.repeat(np.asarray(x)[None], n, axis=0)


def _input_domain(mechanism: base.Mechanism) -> tuple[float, float, tuple[int, ...]]:
    if isinstance(mechanism, base.VectorMechanism):
        return mechanism.low, mechanism.high, (mechanism.d,)
    if isinstance(mechanism, base.ScalarMechanism):
        return mechanism.low, mechanism.high, ()
    raise UserError(f"{mechanism.name} is of no kind that the audit knows.")


def build_subject(
    name: str, epsilon: float, n_classes: int = examples.MORE
) -> MechanismSubject:
    """Return the shipped mechanism ``name`` as a subject."""
    params = examples.mechanism_params(mechanism_class(name), epsilon, n_classes)
    return subject_of(make(name, epsilon=epsilon, **params), name, params)


def subject_of(
    mechanism: base.Mechanism,
    name: str,
    params: Mapping[str, Any] | None = None,
    extra: tuple[FloatArray, ...] = (),
) -> MechanismSubject:
    """Return ``mechanism`` as a subject that claims its own epsilon and delta.

    ``extra`` are inputs that are tried before the usual ones.
    """
    budget = Budget(mechanism.epsilon, mechanism.delta)
    return MechanismSubject(mechanism, name, dict(params or {}), budget, extra)
