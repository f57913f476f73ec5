"""Checks of mechanisms: channels, label pairs, samplers, primitives, odd inputs."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import SeededEntropy, Words
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.checks.loss_checks import exceeds_exp
from curvote.checks.subject import Finding, OddInput, ratio_text
from curvote.checks.tape import ReplayedEntropy, WordMismatch
from curvote.mechanisms import exact
from curvote.mechanisms.alibi import ONE_HOT_STEPS, Alibi
from curvote.mechanisms.base import (
    FiniteMechanism,
    LabelMechanism,
    Mechanism,
    ScalarMechanism,
    VectorMechanism,
)
from curvote.mechanisms.labels import PackedMechanism, SupportMechanism

PROBES = 9
SLACK = 1e-9


def check_channel(mechanism: Mechanism) -> Finding:
    """Check that the channel's largest ratio is the declared one.

    Labels: every pair and output, as fractions. Finite scalar mechanisms: inputs across
    the domain and every output. Nothing to enumerate: ok.
    """
    why = None
    if isinstance(mechanism, LabelMechanism):
        why = _check_label_channel(mechanism)
    elif isinstance(mechanism, FiniteMechanism):
        why = _check_finite_channel(mechanism)
    return Finding("channel", why)


def _check_label_channel(mechanism: LabelMechanism) -> str | None:
    try:
        table = mechanism.channel()
    except UserError:  # too large to be written out
        return None
    if any(sum(row) != 1 for row in table):
        return "a row of the channel does not sum to 1"
    columns = [column for column in zip(*table, strict=True) if max(column) > 0]
    if any(min(column) == 0 for column in columns):
        return "an output is possible for one label and not for another"
    worst = max(max(column) / min(column) for column in columns)
    if worst == mechanism.worst_ratio():
        return None
    return f"the channel's worst ratio is {float(worst):.9g}, the declared one differs"


def accepted_inputs(mechanism: ScalarMechanism) -> FloatArray:
    """Return accepted inputs across the domain, its ends included."""
    grid = np.linspace(mechanism.low, mechanism.high, PROBES)
    return np.array([x for x in grid if accepts(mechanism, x)])


def accepts(mechanism: Mechanism, x: FloatArray) -> bool:
    """Return whether the mechanism accepts the input ``x`` of one client."""
    try:
        mechanism.clip(np.asarray(x)[None])
    except UserError:
        return False
    return True


def _check_finite_channel(mechanism: FiniteMechanism) -> str | None:
    table = mechanism.probabilities(accepted_inputs(mechanism))
    if not np.allclose(table.sum(axis=1), 1, rtol=0, atol=1e-12):
        return "a row of the channel does not sum to 1"
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    worst = max(float((a - b).max()) for a, b in permutations(logs, 2))
    declared = mechanism.worst_log_ratio()
    if abs(worst - declared) <= SLACK * max(1.0, np.exp(min(declared, 30.0)) * 1e-6):
        return None
    return f"the channel's worst loss is {worst:.9g}, declared is {declared:.9g}"


PAIR_SLACK = 1e-9


def check_pair(mechanism: Mechanism) -> Finding:
    """Check that the declared loss is that of both bits of two labels.

    However many labels there are: from the law of two bits, as fractions.
    """
    why = None
    if isinstance(mechanism, SupportMechanism):
        own_bit, other_bit = mechanism.pair()
        if own_bit / other_bit != mechanism.worst_ratio():
            loss = float(own_bit / other_bit)
            why = f"both bits change by a ratio of {loss:.9g}, the declared one differs"
    elif isinstance(mechanism, Alibi):
        why = _check_numbers(mechanism)
    return Finding("pair", why)


def _check_numbers(mechanism: Alibi) -> str | None:
    """Compare with the noise of both numbers of two labels."""
    loss = 2 * ONE_HOT_STEPS * mechanism.noise.rate
    if abs(loss - mechanism.worst_log_ratio()) <= PAIR_SLACK * loss:
        return None
    return f"two numbers lose {loss:.9g} together, the declared loss differs"


def pair_details(mechanism: Mechanism) -> dict[str, str]:
    """Return the details of a label mechanism's worst pair for its row."""
    if isinstance(mechanism, SupportMechanism):
        chances = zip(("1 0", "0 1"), mechanism.pair(), strict=True)
        return {"pair": ", ".join(f"{bits_}: {ratio_text(p)}" for bits_, p in chances)}
    if isinstance(mechanism, Alibi):
        rate = mechanism.noise.rate * ONE_HOT_STEPS
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


def check_sampler(mechanism: Mechanism) -> Finding:
    """Check the outputs for words next to each threshold."""
    why = None
    if isinstance(mechanism, FiniteMechanism):
        why = _check_recovered_channel(mechanism)
    if isinstance(mechanism, FiniteMechanism | LabelMechanism):
        why = why or _check_thresholds(mechanism)
    return Finding("sampler", why)


def _sampler_inputs(mechanism: FiniteMechanism | LabelMechanism) -> list[float]:
    if isinstance(mechanism, FiniteMechanism):
        return [float(x) for x in accepted_inputs(mechanism)[[0, -1]]]
    return [0.0, float(mechanism.n_classes - 1)]


def _check_thresholds(mechanism: FiniteMechanism | LabelMechanism) -> str | None:
    """Return a fault at a declared threshold, if there is one."""
    for name, declared in vars(mechanism).items():
        if name.endswith("threshold") and NEAR < declared < WORDS - NEAR:
            for x, place in product(_sampler_inputs(mechanism), (0, 1)):
                off = _threshold_offset(mechanism, x, declared, place)
                if off:
                    return f"the sampler's {name} is the declared one {off:+d}"
    return None


def _threshold_offset(
    mechanism: Mechanism, x: float, declared: int, place: int
) -> int | None:
    """Return the offset of the output's change from the threshold."""
    nearby, clients = range(-NEAR, NEAR), np.full(CLIENTS, x)
    outputs = [
        mechanism.randomize(clients, PlantedWord(declared + k, place, SEED)).tobytes()
        for k in nearby
    ]
    steps = [k for k, (a, b) in zip(nearby, pairwise(outputs), strict=False) if a != b]
    # The word ``declared`` is the first one that is not below the threshold.
    off = [k + 1 for k in steps if k + 1 != 0]
    return off[0] if off else None


def _check_recovered_channel(mechanism: FiniteMechanism) -> str | None:
    """Recover the whole channel, and compare its worst ratio."""
    inputs = _sampler_inputs(mechanism)
    rare = mechanism.probabilities(np.array(inputs)).min() * WORDS
    if rare <= 2 * SPACING:
        return None
    try:
        channels = [_recover_channel(mechanism, x) for x in inputs]
    except WordMismatch:  # it asks for more than one word a client
        return None
    worst = max(
        Fraction(first.get(output, 0), second.get(output, 0) or 1)
        for first, second in permutations(channels, 2)
        for output in first
    )
    if exceeds_exp(worst, mechanism.epsilon):
        return f"the words lead to a worst ratio above e^{mechanism.epsilon:g}"
    if worst != mechanism.worst_ratio():
        return "the words lead to another worst ratio than the declared one"
    return None


def _recover_channel(mechanism: FiniteMechanism, x: float) -> dict[float, int]:
    """Return how many of the 2^64 words lead from ``x`` to each output."""

    def output_at(words: Words) -> FloatArray:
        return mechanism.randomize(
            np.full(len(words), x), ReplayedEntropy([words.tobytes()])
        )

    scan = np.append(
        np.arange(0, WORDS, SPACING, dtype=np.uint64), np.uint64(WORDS - 1)
    )
    outputs = output_at(scan)
    steps = np.flatnonzero(outputs[1:] != outputs[:-1])
    low = scan[steps]
    high = scan[steps + 1]
    before = output_at(low)
    while ((high - low) > 1).any():
        middle = low + (high - low) // np.uint64(2)
        same = output_at(middle) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    firsts = high
    edges = [0, *(int(word) for word in firsts), WORDS]
    word_counts: dict[float, int] = {}
    for i, output in enumerate([outputs[0], *outputs[steps + 1]]):
        word_counts[output] = word_counts.get(output, 0) + edges[i + 1] - edges[i]
    return word_counts


PRIMITIVE_WORDS = 1 << 64
PRIMITIVE_NEAR = (-(1 << 33), -1, 0, 1, 1 << 33)
_CONTEXT = decimal.Context(prec=60)


def check_primitives() -> Finding:
    """Return the finding on comparisons of `exact` and `bits`."""
    wrong = next((why for why in _primitive_faults() if why), None)
    return Finding("primitives", wrong)


def _primitive_faults() -> Iterator[str | None]:
    yield from (_check_exp(numerator, 40) for numerator in (1, 12_345, 987_654_321))
    yield from (_check_geometric(k) for k in range(1, 44))
    yield from (_check_modulus(n) for n in (3, 1000, (1 << 21) + 1, (1 << 62) + 1))
    yield from (
        _check_coin(t)
        for t in (PRIMITIVE_WORDS // 3, PRIMITIVE_WORDS - 12_345, 77, 1 << 63)
    )


def _floor_exp(exponent: Decimal) -> int:
    """Return floor(2^64 e^exponent)."""
    return int(_CONTEXT.multiply(_CONTEXT.exp(exponent), Decimal(PRIMITIVE_WORDS)))


def _check_exp(numerator: int, bits_: int) -> str | None:
    bound = _floor_exp(_CONTEXT.divide(Decimal(-numerator), Decimal(1 << bits_)))
    for off in PRIMITIVE_NEAR:
        if off and 0 <= bound + off < PRIMITIVE_WORDS:
            words = np.array([bound + off], dtype=np.uint64)
            numerators = np.array([numerator], dtype=np.int64)
            (below,) = exact.bernoulli_exp(words, numerators, bits_, SeededEntropy(1))
            if below != (off < 0):
                return f"below_exp is settled by another word than the first, by {off}"
    return None


def _check_geometric(k: int) -> str | None:
    bound = _floor_exp(Decimal(-k))
    for off in (-1, 1):
        word = np.array([max(bound + off, 0)], dtype=np.uint64)
        (power,) = exact.geometric_draws(word, 2047, SeededEntropy(1))
        if bound + off > 0 and (power >= k) != (off < 0):
            return f"geometric does not reach {k} at floor(2^64 e^-{k}) exactly"
    return None


def _chosen_entropy(*answers: list[int]) -> ReplayedEntropy:
    """Return entropy that gives these words."""
    return ReplayedEntropy(
        [np.array(words, dtype=np.uint64).tobytes() for words in answers]
    )


def _check_modulus(n: int) -> str | None:
    limit = PRIMITIVE_WORDS // n * n
    for word in (0, 1, n - 1, n, limit - 1):
        if exact.uniform_below(n, 1, _chosen_entropy([word]))[0] != word % n:
            return f"below({n}) does not use the whole word {word}"
    if (
        limit < PRIMITIVE_WORDS
        and exact.uniform_below(n, 1, _chosen_entropy([limit], [5]))[0] != 5 % n
    ):
        return f"below({n}) takes a word of the last, incomplete run"
    return None


def _check_coin(threshold: int) -> str | None:
    """Check the bits of `bernoulli`: a leading byte, and 56 more where it ties."""
    lead, rest = divmod(threshold, 1 << 56)
    for off in (-1, 0):
        further = (rest + off) % (1 << 56)
        chosen = _chosen_entropy([lead * 0x0101010101010101], [further << 8] * 8)
        outcomes = exact.bernoulli_bits(threshold, 8, chosen)
        if rest and (outcomes != (off < 0)).any():
            return f"bernoulli({threshold}) is not settled by all 64 bits"
    return None


SUBNORMAL = 5e-324


def odd_inputs_of(mechanism: Mechanism, base: FloatArray) -> list[OddInput]:
    """Return odd inputs made from the valid input ``base`` of one client."""
    record = np.atleast_1d(base).astype(np.float64)
    odd_inputs = [
        *_odd_values(mechanism, record),
        *_odd_types(record),
        *_odd_shapes(mechanism, record),
    ]
    if isinstance(mechanism, VectorMechanism):
        odd_inputs = [_as_batch(odd) for odd in odd_inputs]
    return odd_inputs


def _as_batch(odd: OddInput) -> OddInput:
    """Return an odd input as one row of a batch."""
    value, twin = odd.value, odd.twin
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value[None]
        twin = None if twin is None else twin[None]
    return OddInput(odd.name, value, twin)


def _replace_value(record: FloatArray, value: float) -> FloatArray:
    changed = record.copy()
    changed[0] = value
    return changed


def _odd_values(mechanism: Mechanism, record: FloatArray) -> Iterator[OddInput]:
    for bad in (np.nan, np.inf, -np.inf):
        yield OddInput(str(bad), _replace_value(record, bad))
    zero = _replace_value(record, 0.0)
    yield OddInput("-0.0", _replace_value(record, -0.0), zero)
    if not isinstance(mechanism, ScalarMechanism | VectorMechanism):
        for bad in (-1.0, 0.5, SUBNORMAL, 1e9, 1e300):
            yield OddInput(f"{bad:g}", _replace_value(record, bad))
        return
    yield OddInput("a subnormal number", _replace_value(record, SUBNORMAL), zero)
    for far in (1.5, -1.5, 1e300, -1e300):
        yield OddInput(
            f"{far:g}",
            _replace_value(record, far),
            _clipped_input(mechanism, record, far),
        )


def _clipped_input(
    mechanism: ScalarMechanism | VectorMechanism, record: FloatArray, far: float
) -> FloatArray:
    """Return an input far out of the domain, and its clipped twin.

    The nearest point of the box; or what the mechanism makes of it, where its domain is
    no box (unit vectors): then even ``record`` is changed by ``clip``.
    """
    shape = (1, -1) if isinstance(mechanism, VectorMechanism) else (-1,)
    far_value = _replace_value(record, far)
    if (mechanism.clip(record.reshape(shape))[0] == record).all():
        return np.clip(far_value, mechanism.low, mechanism.high)
    return np.asarray(mechanism.clip(far_value.reshape(shape))[0]).ravel()


def _odd_types(record: FloatArray) -> Iterator[OddInput]:
    yield OddInput("no text", np.full(record.shape, "yes"))
    yield OddInput("a missing object", np.full(record.shape, None))
    text = np.array([repr(float(value)) for value in record])
    for name, odd_value in (
        ("text", text),
        ("an object", record.astype(object)),
        ("a complex number", record.astype(complex)),
    ):
        yield OddInput(name, odd_value, record)
    yield OddInput(
        "a truth value", _replace_value(record, 1.0) != 0, (record != 0) * 1.0
    )


def _odd_shapes(mechanism: Mechanism, record: FloatArray) -> Iterator[OddInput]:
    if isinstance(mechanism, VectorMechanism):
        yield OddInput("one more coordinate", np.append(record, 0.0)[None])
        yield OddInput("no coordinate", np.empty((1, 0)))
        yield OddInput("a record without its batch", record.tolist())
    elif isinstance(mechanism, LabelMechanism):
        yield OddInput("a column of labels", record[:, None])
    shape = record.shape if isinstance(mechanism, VectorMechanism) else ()
    yield OddInput("no client", np.empty((0, *shape)), np.empty((0, *shape)))
