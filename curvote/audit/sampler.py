"""Check of samplers against their declared thresholds.

An error of 1 in 2^64 is invisible to statistics. So the sampler is fed chosen words:
where one word decides, bisection finds every step of the output as a function of it,
and each of the 2^64 words is accounted for; where more words are used, those next to
the declared threshold tell whether it is the one that decides.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np

from curvote.audit.bounds import exceeds_exp
from curvote.audit.channel import accepted_inputs
from curvote.audit.row import Finding
from curvote.audit.tape import ReplayedEntropy, WordMismatch
from curvote.entropy import SeededEntropy, Words
from curvote.mechanisms.base import LabelMechanism, Mechanism
from curvote.mechanisms.finite import FiniteMechanism
from curvote.validate import FloatArray

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
    firsts = _bisect_words(output_at, scan[steps], scan[steps + 1])
    edges = [0, *(int(word) for word in firsts), WORDS]
    word_counts: dict[float, int] = {}
    for i, output in enumerate([outputs[0], *outputs[steps + 1]]):
        word_counts[output] = word_counts.get(output, 0) + edges[i + 1] - edges[i]
    return word_counts


def _bisect_words(at: Callable[[Words], FloatArray], low: Words, high: Words) -> Words:
    """Return the first word with ``high``'s output in each interval (low, high]."""
    before = at(low)
    while ((high - low) > 1).any():
        middle = low + (high - low) // np.uint64(2)
        same = at(middle) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return high
