"""Decoding more numbers than their bins can be written out for: outputs are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import SystemEntropy
from curvote.mechanisms.law import Law, Mixture
from curvote.utility.channel import Channel
from curvote.utility.deployments.bins import bin_edges, bin_masses
from curvote.utility.engines.base import Answers, Draws
from curvote.utility.evidence.binomial import binomial_interval
from curvote.utility.known import Profile
from curvote.utility.setting import Setting
from curvote.validate import FloatArray

# Draws of a record: fewer than asked for where reading one asks m public points.
MOST_DRAWS, FEWEST_DRAWS = 200, 20
# Likelihoods that are looked up for all of them, at most: some seconds.
MOST_WORK = 1 << 29
# Numbers in a batch of outputs and public points.
_BATCH_NUMBERS = 1 << 22
_LEAST = 1e-300


def decode_draws(
    setting: Setting, profile: Profile, link: Channel, prior: Mixture, draws: Draws
) -> Answers:
    """Return the decoded answers' shares of at most `MOST_DRAWS` draws a record.

    Fewer, 20 at least, where records, public points and numbers sent are many. Each
    output is rounded to the same public bins as in the exact way, one number by
    itself, and read by their exact likelihood.
    """
    places = [place for part in link.parts for place in part.places]
    table = _likelihood_table(prior, places)
    number, entropy = (
        _count_draws(draws, table, setting.n),
        draws.entropy or SystemEntropy(),
    )
    counts = np.zeros((setting.n, profile.n_classes), dtype=np.int64)
    for which in _record_batches(setting.n, number * len(prior.weights)):
        values = np.repeat(setting.values[which], number, axis=0)
        likelihoods = table.likelihood(link.draw(values, entropy)[:, places])
        answers = _best_of_draws(likelihoods, profile.class_weights(which), number)
        counts[which] = [np.bincount(a, minlength=profile.n_classes) for a in answers]
    low, high = binomial_interval(counts, number, draws.confidence)
    queries = np.full(setting.n, profile.votes.shape[1], dtype=np.int64)
    return Answers(counts / number, low, high, "draws", queries, number)


@dataclass(frozen=True)
class _LikelihoodTable:
    """Log-likelihood of each number's bins at the public points, by term.

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
        """Return the log-likelihood of one term, (r, m)."""
        pairs = zip(self.terms[t], bins, strict=True)
        logs = sum(table[places] for table, places in pairs)
        return np.asarray(logs + np.log(np.maximum(self.weights[:, t], _LEAST)))


def _count_draws(draws: Draws, table: _LikelihoodTable, n: int) -> int:
    """Return the number of draws of each record that is worth its time."""
    work = n * len(table.weights) * len(table.cuts) * len(table.terms)
    return min(draws.number, max(FEWEST_DRAWS, min(MOST_DRAWS, MOST_WORK // work)))


def _likelihood_table(prior: Mixture, places: Sequence[int]) -> _LikelihoodTable:
    """Return the table for a prior and the sent numbers."""
    cuts = [bin_edges([term[place] for term in prior.terms]) for place in places]
    terms = [
        [
            _log_masses(term[place], ends)
            for place, ends in zip(places, cuts, strict=True)
        ]
        for term in prior.terms
    ]
    return _LikelihoodTable(prior.weights, terms, cuts)


def _log_masses(law: Law, ends: FloatArray) -> FloatArray:
    """Return the logarithms of bin masses, (b, m)."""
    return np.log(np.maximum(bin_masses(law, ends), _LEAST)).T.copy()


def _best_of_draws(
    likelihood: FloatArray, class_weights: list[FloatArray], number: int
) -> NDArray[np.int64]:
    """Return the answers to ``number`` outputs of each record, (records, number)."""
    by_record = likelihood.reshape(len(class_weights[0]), number, -1)
    scores = [np.einsum("irm,im->ir", by_record, weights) for weights in class_weights]
    return np.asarray(np.argmax(scores, axis=0))


def _record_batches(n: int, numbers_each: int) -> Iterator[slice]:
    """Return slices of records whose draws fit into memory."""
    size = max(1, _BATCH_NUMBERS // numbers_each)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
