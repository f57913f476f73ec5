"""Checks of mechanisms: channels, label pairs, samplers, primitives, odd inputs."""

import decimal
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import chain, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import SeededEntropy, Words
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.checks.loss_checks import exceeds_exp
from curvote.checks.subject import Finding, OddInput, ratio_text
from curvote.checks.word_checks import ReplayedEntropy, WordMismatch
from curvote.mechanisms import alibi, base, exact
from curvote.mechanisms.labels import PackedMechanism, SupportMechanism

PROBES = 9
SLACK = 1e-9


def check_channel(mechanism: base.Mechanism) -> Finding:
    """Check that the channel's largest ratio is the declared one.

    Labels: every pair and output, as fractions. Finite scalar mechanisms: inputs across
    the domain and every output. Nothing to enumerate: ok.
    """
    return Finding("channel", next(_channel_faults(mechanism), None))


def _channel_faults(mechanism: base.Mechanism) -> Iterator[str]:
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


def accepted_inputs(mechanism: base.ScalarMechanism) -> FloatArray:
    """Return accepted inputs across the domain, its ends included."""
    grid = np.linspace(mechanism.low, mechanism.high, PROBES)
    return np.array([x for x in grid if accepts(mechanism, x)])


def accepts(mechanism: base.Mechanism, x: FloatArray) -> bool:
    """Return whether the mechanism accepts the input ``x`` of one client."""
    try:
        mechanism.clip(np.asarray(x)[None])
    except UserError:
        return False
    return True


def check_pair(mechanism: base.Mechanism) -> Finding:
    """Check that the declared loss is that of both bits of two labels.

    However many labels there are: from the law of two bits, as fractions.
    """
    why = None
    if isinstance(mechanism, SupportMechanism):
        own_bit, other_bit = mechanism.pair()
        if own_bit / other_bit != mechanism.worst_ratio():
            loss = float(own_bit / other_bit)
            why = f"both bits change by a ratio of {loss:.9g}, the declared one differs"
    elif isinstance(mechanism, alibi.Alibi):  # the noise of both numbers of two labels
        loss = 2 * alibi.ONE_HOT_STEPS * mechanism.noise.rate
        if not abs(loss - mechanism.worst_log_ratio()) <= SLACK * loss:
            why = f"two numbers lose {loss:.9g} together, the declared loss differs"
    return Finding("pair", why)


def pair_details(mechanism: base.Mechanism) -> dict[str, str]:
    """Return the details of a label mechanism's worst pair for its row."""
    if isinstance(mechanism, SupportMechanism):
        chances = zip(("1 0", "0 1"), mechanism.pair(), strict=True)
        return {"pair": ", ".join(f"{bits_}: {ratio_text(p)}" for bits_, p in chances)}
    if isinstance(mechanism, alibi.Alibi):
        rate = mechanism.noise.rate * alibi.ONE_HOT_STEPS
        return {"pair": f"1 0: {rate:.9g}, 0 1: {-rate:.9g} in each logarithm"}
    return {}


def pair_outcomes(
    mechanism: PackedMechanism, x: FloatArray, out: NDArray[Any]
) -> FloatArray:
    """Return which of label and next label each output supports, 0 to 3."""
    labels = x.astype(np.int64)
    own_bits, other_bits = (
        exact.bit_at(out, (labels + step) % mechanism.n_classes) for step in (0, 1)
    )
    return np.asarray(2.0 * own_bits + other_bits)


def outcome_shares(mechanism: PackedMechanism) -> FloatArray:
    """Return the declared probability of each of the four outcomes."""
    own_share, other_share = mechanism.pair()
    none, both_share = 1 - mechanism.p - other_share, mechanism.p - own_share
    return np.array([none, other_share, own_share, both_share], dtype=np.float64)


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


def check_sampler(mechanism: base.Mechanism) -> Finding:
    """Recover the channel, and check the outputs for words next to each threshold."""
    return Finding("sampler", next(_sampler_faults(mechanism), None))


def _sampler_faults(mechanism: base.Mechanism) -> Iterator[str]:
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
            if exceeds_exp(worst, mechanism.epsilon):
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

    def output_at(words: Words) -> FloatArray:
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


def check_primitives() -> Finding:
    """Return the finding on comparisons of `exact` and `bits`."""
    faults = chain(_exponential_faults(), _bit_faults())
    return Finding("primitives", next(faults, None))


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
                    yield (
                        f"below_exp is settled by another word than the first, by {off}"
                    )
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
    """Return entropy that gives these words."""
    return ReplayedEntropy([np.array(a, dtype=np.uint64).tobytes() for a in answers])


SUBNORMAL = 5e-324


def odd_inputs_of(mechanism: base.Mechanism, record: FloatArray) -> list[OddInput]:
    """Return odd inputs made from the valid input ``record`` of one client."""
    record = np.atleast_1d(record).astype(np.float64)
    odd_inputs = list(_odd_inputs(mechanism, record))
    if not isinstance(mechanism, base.VectorMechanism):
        return odd_inputs
    # Each as one row of a batch.
    return [
        OddInput(
            odd.name, odd.value[None], None if odd.twin is None else odd.twin[None]
        )
        if isinstance(odd.value, np.ndarray) and odd.value.ndim == 1
        else odd
        for odd in odd_inputs
    ]


def _odd_inputs(mechanism: base.Mechanism, record: FloatArray) -> Iterator[OddInput]:
    is_vector = isinstance(mechanism, base.VectorMechanism)

    def changed(value: float) -> FloatArray:
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
    mechanism: base.ScalarMechanism | base.VectorMechanism,
    record: FloatArray,
    far: FloatArray,
) -> FloatArray:
    """Return the clipped twin of an input far out of the domain.

    The nearest point of the box; or what the mechanism makes of it, where its domain is
    no box (unit vectors): then even ``record`` is changed by ``clip``.
    """
    shape = (1, -1) if isinstance(mechanism, base.VectorMechanism) else (-1,)
    if (mechanism.clip(record.reshape(shape))[0] == record).all():
        return np.clip(far, mechanism.low, mechanism.high)
    return np.asarray(mechanism.clip(far.reshape(shape))[0]).ravel()
