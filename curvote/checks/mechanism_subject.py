"""Mechanisms as subjects, one value, label or record, and the checks of these alone."""

import decimal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import Entropy, SeededEntropy, Words
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.base.validate import FloatArray as Array
from curvote.checks import examples, loss_checks, residuals
from curvote.checks.subject import Findings, Loss, OddInput, Rng, Subject
from curvote.checks.word_checks import ReplayedEntropy, WordMismatch
from curvote.mechanisms import alibi, base, exact
from curvote.mechanisms.factory import make, mechanism_class
from curvote.mechanisms.labels import PackedMechanism, SupportMechanism
from curvote.mechanisms.privunit import OneOf
from curvote.mechanisms.randomized_response import BinaryRR

Outputs = NDArray[Any]
PROBES = 9
SLACK = 1e-9


def channel_faults(mechanism: base.Mechanism) -> Iterator[str]:
    """Yield why the channel's largest ratio is not the declared one.

    Labels: every pair and output, as fractions. Finite scalar mechanisms: inputs across
    the domain and every output. Nothing to enumerate: nothing wrong.
    """
    if isinstance(mechanism, base.LabelMechanism):
        try:
            table = mechanism.channel()
        except UserError:  # too large to be written out
            return
        if any(sum(row) != 1 for row in table):
            yield "a row of the channel does not sum to 1"
        columns = [column for column in zip(*table, strict=True) if max(column) > 0]
        if any(min(column) == 0 for column in columns):
            yield "an output is possible for one label and not for another"
        ratio = max(max(column) / min(column) for column in columns)
        if ratio != mechanism.worst_ratio():
            worst = float(ratio)
            yield f"the channel's worst ratio is {worst:.9g}, the declared one differs"
    elif isinstance(mechanism, base.FiniteMechanism):
        shares = mechanism.probabilities(accepted_inputs(mechanism))
        if not np.allclose(shares.sum(axis=1), 1, rtol=0, atol=1e-12):
            yield "a row of the channel does not sum to 1"
        with np.errstate(divide="ignore"):
            logs = np.log(shares)
        worst = max(float((a - b).max()) for a, b in permutations(logs, 2))
        declared = mechanism.worst_log_ratio()
        scale = max(1.0, np.exp(min(declared, 30.0)) * 1e-6)
        if not abs(worst - declared) <= SLACK * scale:
            yield f"the channel's worst loss is {worst:.9g}, declared is {declared:.9g}"


def accepted_inputs(mechanism: base.ScalarMechanism) -> Array:
    """Return accepted inputs across the domain, its ends included."""
    grid = np.linspace(mechanism.low, mechanism.high, PROBES)
    return np.array([x for x in grid if accepts(mechanism, x)])


def accepts(mechanism: base.Mechanism, x: Array) -> bool:
    """Return whether the mechanism accepts the input ``x`` of one client."""
    try:
        mechanism.clip(np.asarray(x)[None])
    except UserError:
        return False
    return True


def pair_faults(mechanism: base.Mechanism) -> Iterator[str]:
    """Yield why the declared loss is not that of both bits of two labels.

    However many labels there are: from the law of two bits, as fractions.
    """
    if isinstance(mechanism, SupportMechanism):
        own_bit, other_bit = mechanism.pair()
        if own_bit / other_bit != mechanism.worst_ratio():
            loss = float(own_bit / other_bit)
            yield f"both bits change by a ratio of {loss:.9g}, the declared one differs"
    elif isinstance(mechanism, alibi.Alibi):  # the noise of both numbers of two labels
        loss = 2 * alibi.ONE_HOT_STEPS * mechanism.noise.rate
        if not abs(loss - mechanism.worst_log_ratio()) <= SLACK * loss:
            yield f"two numbers lose {loss:.9g} together, the declared loss differs"


WORDS = 1 << 64
# An output that fewer words lead to might hide between two words of the scan.
SPACING = 1 << 50
NEAR = 3
# So many that a request of one word for each is told from one of packed bits.
CLIENTS = 61
SEED = 1


class PlantedWord:
    """A stream with one word for every client, then words from a seed.

    Into the first request of one or two words a client, at ``place`` 0 or 1 of it. So
    two runs differ in nothing but that word.
    """

    def __init__(self, word: int, place: int, seed: int) -> None:
        self._word, self._place = word, place
        self._stream = SeededEntropy(seed)

    def words(self, n: int) -> Words:
        """Return ``n`` words."""
        out = self._stream.words(n).copy()
        if n in {CLIENTS, 2 * CLIENTS} and self._place >= 0:
            out[self._place * CLIENTS : (self._place + 1) * CLIENTS] = self._word
            self._place = -1
        return out


def sampler_faults(mechanism: base.Mechanism) -> Iterator[str]:
    """Yield faults of the channel that words lead to, and next to each threshold."""
    if isinstance(mechanism, base.FiniteMechanism):
        inputs = [float(x) for x in accepted_inputs(mechanism)[[0, -1]]]
        rare = mechanism.probabilities(np.array(inputs)).min() * WORDS
        many = inputs if rare > 2 * SPACING else []
        try:
            channels = [_recover_channel(mechanism, x) for x in many]
        except WordMismatch:  # it asks for more than one word a client
            channels = []
        if channels:
            worst = max(
                Fraction(first.get(output, 0), second.get(output, 0) or 1)
                for first, second in permutations(channels, 2)
                for output in first
            )
            if loss_checks.exceeds_exp(worst, mechanism.epsilon):
                yield f"the words lead to a worst ratio above e^{mechanism.epsilon:g}"
            if worst != mechanism.worst_ratio():
                yield "the words lead to another worst ratio than the declared one"
    elif isinstance(mechanism, base.LabelMechanism):
        inputs = [0.0, float(mechanism.n_classes - 1)]
    else:
        return
    for name, declared in vars(mechanism).items():
        if not (name.endswith("threshold") and NEAR < declared < WORDS - NEAR):
            continue
        for x, place in product(inputs, (0, 1)):
            clients = np.full(CLIENTS, x)
            before = b""
            for k in range(-NEAR, NEAR):
                word = PlantedWord(declared + k, place, SEED)
                output = mechanism.randomize(clients, word).tobytes()
                # The word ``declared`` is the first that is not below the threshold.
                if k > -NEAR and k and output != before:
                    yield f"the sampler's {name} is the declared one {k:+d}"
                before = output


def _recover_channel(mechanism: base.FiniteMechanism, x: float) -> dict[float, int]:
    """Return how many of the 2^64 words lead from ``x`` to each output."""

    def output_at(words: Words) -> Array:
        entropy = ReplayedEntropy([words.tobytes()])
        return mechanism.randomize(np.full(len(words), x), entropy)

    spaced = np.arange(0, WORDS, SPACING, dtype=np.uint64)
    scan = np.append(spaced, np.uint64(WORDS - 1))
    outputs = output_at(scan)
    steps = np.flatnonzero(outputs[1:] != outputs[:-1])
    # The first word with another output lies in (low, high].
    low, high = scan[steps], scan[steps + 1]
    before = output_at(low)
    while ((high - low) > 1).any():
        middle = low + (high - low) // np.uint64(2)
        same = output_at(middle) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    edges = [0, *(int(word) for word in high), WORDS]
    word_counts: dict[float, int] = {}
    for i, output in enumerate([outputs[0], *outputs[steps + 1]]):
        word_counts[output] = word_counts.get(output, 0) + edges[i + 1] - edges[i]
    return word_counts


PRIMITIVE_NEAR = (-(1 << 33), -1, 0, 1, 1 << 33)
_CONTEXT = decimal.Context(prec=60)


def primitive_faults(mechanism: base.Mechanism | None = None) -> Iterator[str]:
    """Yield faults of the comparisons that all mechanisms share."""
    del mechanism
    yield from _exponential_faults()
    yield from _bit_faults()


def _exponential_faults() -> Iterator[str]:
    def floor_exp(exponent: Decimal) -> int:  # of 2^64 e^exponent
        return int(_CONTEXT.multiply(_CONTEXT.exp(exponent), Decimal(WORDS)))

    for numerator in (1, 12_345, 987_654_321):
        bound = floor_exp(_CONTEXT.divide(Decimal(-numerator), Decimal(1 << 40)))
        for off in PRIMITIVE_NEAR:
            if off and 0 <= bound + off < WORDS:
                words = np.array([bound + off], dtype=np.uint64)
                numerators = np.array([numerator], dtype=np.int64)
                (below,) = exact.bernoulli_exp(words, numerators, 40, SeededEntropy(1))
                if below != (off < 0):
                    why = "below_exp is settled by another word than the first"
                    yield f"{why}, by {off}"
    for k in range(1, 44):
        bound = floor_exp(Decimal(-k))
        for off in (-1, 1):
            word = np.array([max(bound + off, 0)], dtype=np.uint64)
            (power,) = exact.geometric_draws(word, 2047, SeededEntropy(1))
            if bound + off > 0 and (power >= k) != (off < 0):
                yield f"geometric does not reach {k} at floor(2^64 e^-{k}) exactly"


def _bit_faults() -> Iterator[str]:
    for n in (3, 1000, (1 << 21) + 1, (1 << 62) + 1):
        limit = WORDS // n * n
        for value in (0, 1, n - 1, n, limit - 1):
            if exact.uniform_below(n, 1, _chosen_entropy([value]))[0] != value % n:
                yield f"below({n}) does not use the whole word {value}"
        beyond = _chosen_entropy([limit % WORDS], [5])
        if limit < WORDS and exact.uniform_below(n, 1, beyond)[0] != 5 % n:
            yield f"below({n}) takes a word of the last, incomplete run"
    # The bits of `bernoulli`: a leading byte, and 56 more where it ties.
    for threshold in (WORDS // 3, WORDS - 12_345, 77, 1 << 63):
        lead, rest = divmod(threshold, 1 << 56)
        for off in (-1, 0):
            further = (rest + off) % (1 << 56)
            chosen = _chosen_entropy([lead * 0x0101010101010101], [further << 8] * 8)
            outcomes = exact.bernoulli_bits(threshold, 8, chosen)
            if rest and (outcomes != (off < 0)).any():
                yield f"bernoulli({threshold}) is not settled by all 64 bits"


def _chosen_entropy(*answers: list[int]) -> ReplayedEntropy:
    return ReplayedEntropy([np.array(a, dtype=np.uint64).tobytes() for a in answers])


# Checks of every mechanism by their names: the first fault counts.
CHECKS: Mapping[str, Callable[[base.Mechanism], Iterator[str]]] = {
    "channel": channel_faults,
    "pair": pair_faults,
    "sampler": sampler_faults,
    "primitives": primitive_faults,
}
SUBNORMAL = 5e-324


def odd_inputs_of(mechanism: base.Mechanism, record: Array) -> list[OddInput]:
    """Return odd inputs made from the valid input ``record`` of one client."""
    record = np.atleast_1d(record).astype(np.float64)
    odd_inputs = list(_odd_inputs(mechanism, record))
    if not isinstance(mechanism, base.VectorMechanism):
        return odd_inputs

    def as_batch(value: Any) -> Any:
        is_row = isinstance(value, np.ndarray) and value.ndim == 1
        return value[None] if is_row else value

    return [OddInput(o.name, as_batch(o.value), as_batch(o.twin)) for o in odd_inputs]


def _odd_inputs(mechanism: base.Mechanism, record: Array) -> Iterator[OddInput]:
    is_vector = isinstance(mechanism, base.VectorMechanism)

    def changed(value: float) -> Array:
        return np.append(value, record[1:])

    for bad in (np.nan, np.inf, -np.inf):
        yield OddInput(str(bad), changed(bad))
    yield OddInput("-0.0", changed(-0.0), changed(0.0))
    if isinstance(mechanism, base.ScalarMechanism | base.VectorMechanism):
        yield OddInput("a subnormal number", changed(SUBNORMAL), changed(0.0))
        for far in (1.5, -1.5, 1e300, -1e300):
            twin = _clipped_input(mechanism, record, changed(far))
            yield OddInput(f"{far:g}", changed(far), twin)
    else:
        for bad in (-1.0, 0.5, SUBNORMAL, 1e9, 1e300):
            yield OddInput(f"{bad:g}", changed(bad))
    yield OddInput("no text", np.full(record.shape, "yes"))
    yield OddInput("a missing object", np.full(record.shape, None))
    yield OddInput("text", np.array([repr(float(value)) for value in record]), record)
    yield OddInput("an object", record.astype(object), record)
    yield OddInput("a complex number", record.astype(complex), record)
    yield OddInput("a truth value", changed(1.0) != 0, (record != 0) * 1.0)
    if is_vector:
        yield OddInput("one more coordinate", np.append(record, 0.0)[None])
        yield OddInput("no coordinate", np.empty((1, 0)))
        yield OddInput("a record without its batch", record.tolist())
    elif isinstance(mechanism, base.LabelMechanism):
        yield OddInput("a column of labels", record[:, None])
    shape = record.shape if is_vector else ()
    yield OddInput("no client", np.empty((0, *shape)), np.empty((0, *shape)))


def _clipped_input(
    mechanism: base.ScalarMechanism | base.VectorMechanism, record: Array, far: Array
) -> Array:
    """Return the clipped twin of an input far out of the domain.

    The nearest point of the box; or what the mechanism makes of it, where its domain is
    no box (unit vectors): then even ``record`` is changed by ``clip``.
    """
    shape = (1, -1) if isinstance(mechanism, base.VectorMechanism) else (-1,)
    if (mechanism.clip(record.reshape(shape))[0] == record).all():
        return np.clip(far, mechanism.low, mechanism.high)
    return np.asarray(mechanism.clip(far.reshape(shape))[0]).ravel()


@dataclass(frozen=True, eq=False)
class MechanismSubject(Subject):
    """One mechanism; an input is the array of one client: (), () or (d,)."""

    mechanism: base.Mechanism
    name: str
    params: Mapping[str, Any]
    budget: Budget
    extra: tuple[Array, ...] = ()

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

    def inputs(self, rng: Rng) -> list[Array]:
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
        accepted = [x for x in places if accepts(mechanism, x)]
        return [*self.extra, *accepted]

    def draw(self, x: Array, n: int, entropy: Entropy) -> Outputs:
        """Return the outputs of ``n`` clients that all hold ``x``."""
        return self.send(repeat_input(x, n), entropy)

    def send(self, many: Array, entropy: Entropy) -> Outputs:
        """Return the outputs of clients who hold ``many``, a row each."""
        return self.mechanism.randomize(many, entropy)

    def many(self, n: int, rng: Rng) -> Array:
        """Return labels, or numbers from everywhere in the domain and beyond it."""
        if isinstance(self.mechanism, base.LabelMechanism):
            return rng.integers(self.mechanism.n_classes, size=n).astype(np.float64)
        _, _, shape = _input_domain(self.mechanism)
        numbers = residuals.test_values((n, *shape), rng)
        binary = isinstance(self.mechanism, BinaryRR)
        return np.where(numbers < 0, -1.0, 1.0) if binary else numbers

    def part(self, many: Array, rows: slice) -> Array:
        """Return some rows."""
        return many[rows]

    def together(self, outputs: list[Outputs]) -> Outputs:
        """Return the outputs of several calls as those of one."""
        return np.concatenate(outputs)

    def places(self, many: Array) -> Array:
        """Return the numbers themselves."""
        return many.reshape(len(many), -1)

    def residuals(self, many: Array, outputs: Outputs, rng: Rng) -> Array | None:
        """Return outputs with the inputs taken out, by the mechanism's declared law."""
        return residuals.output_residuals(self.mechanism, many, outputs, rng)

    def view(self, outputs: Outputs) -> Array:
        """Return numbers, codes, or the bits of packed codes, (n, k)."""
        if isinstance(self.mechanism, PackedMechanism):
            bits = np.unpackbits(outputs, axis=1, count=self.mechanism.n_classes)
            return bits.astype(np.float64)
        return np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)

    def input_row(self, x: Array) -> Array | None:
        """Return the value, the record, the label, or its one-hot bits."""
        if isinstance(self.mechanism, PackedMechanism | alibi.Alibi):
            return np.asarray(np.arange(self.mechanism.n_classes) == x, dtype=float)
        return np.atleast_1d(x)

    def log_ratio(self, x: Array, x2: Array, outputs: Outputs) -> Array:
        """Return the mechanism's declared loss for each output."""
        first, second = (repeat_input(value, len(outputs)) for value in (x, x2))
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.mechanism.log_ratio(first, second, outputs)

    def possible(self, outputs: Outputs) -> NDArray[np.bool_]:
        """Return a mask of the possible outputs."""
        return self.mechanism.possible_mask(outputs)

    def loss(self) -> Loss:
        """Return the loss by the mechanism's integers."""
        mechanism = self.mechanism
        return Loss(mechanism.worst_log_ratio(), mechanism.worst_ratio())

    def law_gap(self, x: Array, outputs: Outputs, alpha: float) -> str | None:
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
            outcomes = residuals.pair_outcomes(mechanism, labels, outputs)
            shares = residuals.outcome_shares(mechanism)
            return loss_checks.share_gap(outcomes, np.arange(4.0), shares, alpha)
        if isinstance(mechanism, base.ScalarMechanism):
            return loss_checks.distribution_gap(mechanism, x, outputs, alpha)
        return None

    def own_checks(self) -> Findings:
        """Check the channel and the sampler by brute force."""
        checks = CHECKS.items()
        return {name: next(check(self.mechanism), None) for name, check in checks}

    def odd_inputs(self) -> list[OddInput]:
        """Return invalid values, and values with a twin."""
        record = self.inputs(np.random.default_rng(0))[-1]
        return odd_inputs_of(self.mechanism, record)

    def release(self, given: Any, entropy: Entropy) -> bytes:
        """Return the bytes that the mechanism makes of ``given``."""
        return np.asarray(self.send(given, entropy)).tobytes()


def repeat_input(x: Array, n: int) -> Array:
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
    extra: tuple[Array, ...] = (),
) -> MechanismSubject:
    """Return ``mechanism`` as a subject that claims its own epsilon and delta.

    ``extra`` are inputs that are tried before the usual ones.
    """
    budget = Budget(mechanism.epsilon, mechanism.delta)
    return MechanismSubject(mechanism, name, dict(params or {}), budget, extra)
