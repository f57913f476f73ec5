"""Decoding more numbers than their bins can be written out for: outputs are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import SystemEntropy
from curvote.mechanisms.law import Law, Mixture
from curvote.utility.channel import Channel
from curvote.utility.deployments.bins import edges, masses
from curvote.utility.engines.base import Answers, Draws
from curvote.utility.evidence.binomial import interval
from curvote.utility.known import Known
from curvote.utility.setting import Setting
from curvote.validate import FloatArray

# Draws of a record: fewer than asked for where reading one asks m public points.
MOST_DRAWS, FEWEST_DRAWS = 200, 20
# Likelihoods that are looked up for all of them, at most: some seconds.
MOST_WORK = 1 << 29
# Numbers in a batch of outputs and public points.
_AT_ONCE = 1 << 22
_LEAST = 1e-300


def drawn(
    setting: Setting, known: Known, seen: Channel, prior: Mixture, draws: Draws
) -> Answers:
    """Return the decoded answers' shares of at most `MOST_DRAWS` draws a record.

    Fewer, 20 at least, where records, public points and numbers sent are many. Each
    output is rounded to the same public bins as in the exact way, one number by
    itself, and read by their exact likelihood.
    """
    sent = [place for part in seen.parts for place in part.places]
    table = _table(prior, sent)
    number, entropy = _number(draws, table, setting.n), draws.entropy or SystemEntropy()
    counts = np.zeros((setting.n, known.n_classes), dtype=np.int64)
    for which in _batches(setting.n, number * len(prior.weights)):
        values = np.repeat(setting.values[which], number, axis=0)
        found = table.likelihood(seen.draw(values, entropy)[:, sent])
        answers = _best(found, known.held(which), number)
        counts[which] = [np.bincount(a, minlength=known.n_classes) for a in answers]
    low, high = interval(counts, number, draws.confidence)
    queries = np.full(setting.n, known.votes.shape[1], dtype=np.int64)
    return Answers(counts / number, low, high, "draws", queries, number)


@dataclass(frozen=True)
class _Table:
    """ln P(bin | public point) of each number, [b, m], in each term of a mixture.

    ``weights`` (m, t) are the terms' and ``cuts`` the numbers' bins.
    """

    weights: FloatArray
    terms: Sequence[Sequence[FloatArray]]
    cuts: Sequence[FloatArray]

    def likelihood(self, outputs: FloatArray) -> FloatArray:
        """Return P(bins of the output | public point), (r, m), up to a factor a row."""
        pairs = zip(self.cuts, outputs.T, strict=True)
        bins = [np.searchsorted(ends, column) for ends, column in pairs]
        parts = [self._term(t, bins) for t in range(len(self.terms))]
        logs = np.logaddexp.reduce(parts, axis=0)
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))

    def _term(self, t: int, bins: Sequence[NDArray[np.intp]]) -> FloatArray:
        pairs = zip(self.terms[t], bins, strict=True)
        logs = sum(table[places] for table, places in pairs)
        return np.asarray(logs + np.log(np.maximum(self.weights[:, t], _LEAST)))


def _number(draws: Draws, table: _Table, n: int) -> int:
    """Return how many draws of each of ``n`` records are worth their time."""
    each = n * len(table.weights) * len(table.cuts) * len(table.terms)
    return min(draws.number, max(FEWEST_DRAWS, min(MOST_DRAWS, MOST_WORK // each)))


def _table(prior: Mixture, sent: Sequence[int]) -> _Table:
    cuts = [edges([term[place] for term in prior.terms]) for place in sent]
    terms = [
        [_logs(term[place], ends) for place, ends in zip(sent, cuts, strict=True)]
        for term in prior.terms
    ]
    return _Table(prior.weights, terms, cuts)


def _logs(law: Law, ends: FloatArray) -> FloatArray:
    return np.log(np.maximum(masses(law, ends), _LEAST)).T.copy()


def _best(
    likelihood: FloatArray, held: list[FloatArray], number: int
) -> NDArray[np.int64]:
    """Return the answers to ``number`` outputs of each record, (records, number)."""
    found = likelihood.reshape(len(held[0]), number, -1)
    scores = [np.einsum("irm,im->ir", found, each) for each in held]
    return np.asarray(np.argmax(scores, axis=0))


def _batches(n: int, each: int) -> Iterator[slice]:
    size = max(1, _AT_ONCE // each)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
