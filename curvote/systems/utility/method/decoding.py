"""Decoding of noised numbers by public bins, fine where the noise is narrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import SystemEntropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms.law import Law, Mixture
from curvote.systems.utility.method.channel import Channel
from curvote.systems.utility.method.deployment import (
    Deployment,
    Setting,
    deployment_channel,
)
from curvote.systems.utility.method.engines.base import Answers, Draws
from curvote.systems.utility.method.intervals import binomial_interval
from curvote.systems.utility.method.measurement import exact_answers
from curvote.systems.utility.method.profile import Profile

# A bin is so many times narrower than the middle half of the noise.
FINENESS = 12
FEWEST, MOST = 16, 512
# What lies beyond this share of the mass, on either side, is one bin.
TAIL = 1e-3
_STEPS = 40
# Less mass than this is no rest, but rounding.
_NOTHING = 1e-9


def bin_edges(laws: Sequence[Law], number: int | None = None) -> FloatArray:
    """Return the bins' inner ends, (b - 1,), increasing, for laws of public inputs.

    Bin k is (end k-1, end k]. ``laws`` are those of one number in each term of a
    mixture. Atoms have bins of their own; the rest is cut evenly into ``number`` bins
    (`count_bins` where not given) between its outermost quantiles.
    """
    points = np.unique(np.concatenate([law.points[law.masses > 0] for law in laws]))
    smooth = _continuous_laws(laws)
    if not smooth:
        return np.asarray(points[:-1])
    atoms = np.concatenate([points, np.nextafter(points, -inf)])
    low, high = _central_range(smooth)
    count = count_bins(laws) if number is None else number
    return np.unique(np.concatenate([atoms, np.linspace(low, high, count - 1)]))


def count_bins(laws: Sequence[Law]) -> int:
    """Return the number of bins of the continuous part: `FINENESS` in its half.

    At least ``FEWEST`` and at most ``MOST``; 1 where there are atoms only.
    """
    smooth = _continuous_laws(laws)
    if not smooth:
        return 1
    low, high = _central_range(smooth)
    halves = [_quantile(law, 0.75) - _quantile(law, 0.25) for law in smooth]
    narrowest = min(float(np.median(half)) for half in halves)
    width = max(narrowest / FINENESS, (high - low) / MOST)
    return int(np.clip(np.ceil((high - low) / width), FEWEST, MOST))


def _continuous_laws(laws: Sequence[Law]) -> list[Law]:
    """Return the laws that have a part without atoms."""
    return [law for law in laws if law.masses.sum(axis=1).min() < 1 - _NOTHING]


def _central_range(laws: Sequence[Law]) -> tuple[float, float]:
    """Return the outermost quantiles of some laws."""
    low = min(float(_quantile(law, TAIL).min()) for law in laws)
    high = max(float(_quantile(law, 1 - TAIL).max()) for law in laws)
    return low, high


def _quantile(law: Law, share: float) -> FloatArray:
    """Return the quantile of each input, (n,), by bisection."""
    reach = 1.0
    while law.cdf([reach]).min() < 1 - TAIL / 2 or law.cdf([-reach]).max() > TAIL / 2:
        reach *= 2
    low, high = np.full(law.n, -reach), np.full(law.n, reach)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        under = law.cdf(middle[:, None])[:, 0] < share
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return high


def bin_masses(law: Law, ends: FloatArray) -> FloatArray:
    """Return P(each bin), (n, b), for the bins between ``ends`` (b - 1,)."""
    full = np.zeros((law.n, len(ends) + 2))
    full[:, 1:-1], full[:, -1] = law.cdf(ends), 1.0
    return np.maximum(np.diff(full, axis=1), 0.0)


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
    cuts = [bin_edges([term[place] for term in prior.terms]) for place in places]
    logs = [
        [np.log(np.maximum(masses, _LEAST)).T.copy() for masses in numbers]
        for numbers in _bin_law(prior, places, cuts).terms
    ]
    table = _LikelihoodTable(prior.weights, logs, cuts)
    work = setting.n * len(table.weights) * len(table.cuts) * len(table.terms)
    number = min(draws.number, max(FEWEST_DRAWS, min(MOST_DRAWS, MOST_WORK // work)))
    entropy = draws.entropy or SystemEntropy()
    counts = np.zeros((setting.n, profile.n_classes), dtype=np.int64)
    size = max(1, _BATCH_NUMBERS // (number * len(prior.weights)))
    for start in range(0, setting.n, size):
        which = slice(start, min(start + size, setting.n))
        values = np.repeat(setting.values[which], number, axis=0)
        likelihoods = table.likelihood(link.draw(values, entropy)[:, places])
        class_weights = profile.class_weights(which)
        by_record = likelihoods.reshape(len(class_weights[0]), number, -1)
        scores = [np.einsum("irm,im->ir", by_record, w) for w in class_weights]
        answers = np.asarray(np.argmax(scores, axis=0))
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
        parts = []
        for t, tables in enumerate(self.terms):
            pairs = zip(tables, bins, strict=True)
            sums = sum(table[places] for table, places in pairs)
            parts.append(sums + np.log(np.maximum(self.weights[:, t], _LEAST)))
        logs = np.logaddexp.reduce(parts, axis=0)
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


# Bins of two features together: what more of them gain is below .001.
MOST_BINS = 1 << 12
# More terms of a mixture than these are drawn from.
MOST_TERMS = 64
# Numbers in a block of bins and records.
_BLOCK_NUMBERS = 1 << 22


@dataclass(frozen=True)
class Binned:
    """Laws of n inputs on a grid of bins of one or two numbers.

    ``terms`` holds for each term of the mixture the masses (n, b) of each number's
    bins; ``weights`` (n, t) are the terms'.
    """

    weights: FloatArray
    terms: Sequence[Sequence[FloatArray]]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of bins of the first and of the second number (1: none)."""
        first, *remaining = self.terms[0]
        return first.shape[1], remaining[0].shape[1] if remaining else 1

    def block(self, which: slice) -> FloatArray:
        """Return P(bin), (n, bins), for some bins of the first number."""
        parts = []
        for weight, (first, *remaining) in zip(self.weights.T, self.terms, strict=True):
            masses = first[:, which]
            for other in remaining:
                pairs = masses[:, :, None] * other[:, None]
                masses = pairs.reshape(len(masses), -1)
            parts.append(weight[:, None] * masses)
        return np.asarray(sum(parts))


def can_enumerate(prior: Mixture, places: Sequence[int]) -> bool:
    """Return whether all bins can be enumerated: one number or two."""
    return len(places) <= 2 and len(prior.terms) <= MOST_TERMS


def bin_laws(
    prior: Mixture, law: Mixture, places: Sequence[int]
) -> tuple[Binned, Binned]:
    """Return both laws on the same bins, made for the public ``prior`` alone.

    ``places`` are the places of the one or two numbers that are sent.
    """
    laws_by_number = [[term[place] for term in prior.terms] for place in places]
    counts = [count_bins(laws) for laws in laws_by_number]
    if len(counts) > 1:  # reduced to fit together
        shrink = min(1.0, np.sqrt(MOST_BINS / np.prod(counts)))
        counts = [max(4, round(count * shrink)) for count in counts]
    cuts = list(map(bin_edges, laws_by_number, counts))
    return _bin_law(prior, places, cuts), _bin_law(law, places, cuts)


def _bin_law(law: Mixture, places: Sequence[int], cuts: Sequence[FloatArray]) -> Binned:
    """Return a law's masses on given bins."""
    pairs = list(zip(places, cuts, strict=True))
    terms = [[bin_masses(term[i], ends) for i, ends in pairs] for term in law.terms]
    return Binned(law.weights, terms)


def bin_blocks(shape: tuple[int, int], n: int) -> Iterator[slice]:
    """Return slices of the first number's bins that fit into memory."""
    size = max(1, _BLOCK_NUMBERS // (n * shape[1]))
    for start in range(0, shape[0], size):
        yield slice(start, start + size)


def decode(
    setting: Setting, profile: Profile, deployment: Deployment, draws: Draws
) -> Answers:
    """Return the decoded answers' shares, exact for up to two sent features."""
    link = deployment_channel(setting, deployment, clip=False)
    places = [place for part in link.parts for place in part.places]
    law, prior = link.law(setting.values), link.law(setting.prior)
    if law is None or prior is None:
        raise UserError(
            f"{deployment.mechanism} has no law that can be written out, so its output"
            " cannot be decoded: read it raw."
        )
    if not can_enumerate(prior, places):
        return decode_draws(setting, profile, link, prior, draws)
    class_weights = profile.class_weights()
    binned_prior, binned_law = bin_laws(prior, law, places)
    shares = np.zeros((len(class_weights[0]), len(class_weights)))
    for block in bin_blocks(binned_law.shape, len(shares)):
        likelihood, chance = binned_prior.block(block), binned_law.block(block)
        answer = _best_class(class_weights, likelihood)
        for place in range(len(class_weights)):
            shares[:, place] += np.einsum("ij,ij->i", chance, answer == place)
    return exact_answers(shares, profile.votes.shape[1])


def _best_class(
    class_weights: list[FloatArray], likelihood: FloatArray
) -> NDArray[np.int64]:
    """Return the class of most posterior weight, (n, bins); ties: the first."""
    if len(class_weights) == 2:
        first, second = class_weights
        return np.asarray(((second - first) @ likelihood > 0).astype(np.int64))
    best = class_weights[0] @ likelihood
    answer = np.zeros(best.shape, dtype=np.int64)
    for place, weights in enumerate(class_weights[1:], 1):
        score = weights @ likelihood
        answer[score > best] = place
        np.maximum(best, score, out=best)
    return answer
