"""Privacy accounting: composition of losses and amplification by shuffling.

Feldman, McMillan & Talwar (2021), "Hiding among the clones". R is epsilon-private, and
two tables differ in one client's record, x or x'. With p = e^epsilon the messages of
that client are mixtures of the same two laws,

    R(x) = (p U + V)/(p + 1)  and  R(x') = (U + p V)/(p + 1),

and whatever another client's record is, its message is one of U or V, a clone, with
probability 1/(2p) each, because R(.) >= max(R(x), R(x'))/p >= (U + V)/(2p). Shuffled
messages are therefore a function of how many are U and how many are V (theorem 3.2):

    C ~ Bin(n - 1, 1/p),  A ~ Bin(C, 1/2),  D ~ Bernoulli(p/(p + 1)),
    (A + D, C - A + 1 - D)  against  (A + 1 - D, C - A + D).

The later "stronger clones" (2/(p + 1) in the place of 1/p) need R(.) >= (R(x) +
R(x'))/(p + 1) in each point, which holds for randomized response of a bit, but not for
every epsilon-private R: not used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Above it nothing is gained that a float shows.
LARGEST_LOCAL_EPSILON = 100.0
# Floating point is trusted to so many parts of each term.
SLACK = 1e-9
HALVINGS = 32
# Numbers of clones: each up to FINE, then steps of a part 2^-9.
FINE_COUNT, CLONE_STEP = 512, 1 + 2.0**-9
# Numbers of clones that are as good as impossible are not told apart.
_RARE, _SURE = 1e-12, 1 - 1e-9
_WINDOW = 40  # standard deviations


def closed_form_bound(epsilon: float, n: int, delta: float) -> float:
    """Return the closed-form epsilon' of theorem 3.1; infinity if it fails.

    ln(1 + (p - 1)/(p + 1) (8 sqrt(p ln(4/delta)/n) + 8 p/n)), p = e^epsilon, for
    epsilon <= ln(n/(16 ln(2/delta))).
    """
    if epsilon > math.log(n / (16 * math.log(2 / delta))):
        return math.inf
    p = math.exp(epsilon)
    reach = 8 * math.sqrt(p * math.log(4 / delta) / n) + 8 * p / n
    return math.log1p(math.tanh(epsilon / 2) * reach)


def numerical_bound(epsilon: float, n: int, delta: float) -> float:
    """Return the least epsilon' that theorem 3.2 gives, rounded upwards."""
    if epsilon > LARGEST_LOCAL_EPSILON:
        return epsilon
    clones = _Clones.of(epsilon, n, delta)
    low, high = 0.0, epsilon
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        holds = clones.delta(middle) <= delta
        low, high = (low, middle) if holds else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class _Clones:
    """Possible numbers of clones, increasing from 0, and P(C < count), both [J].

    Fewer clones hide less, so what lies between two of them counts as the lower one:
    an upper bound, and one that falls with n, as the steps do not depend on it.
    """

    epsilon: float
    counts: Index
    below: Array

    @classmethod
    def of(cls, epsilon: float, n: int, delta: float) -> _Clones:
        from scipy.stats import binom  # a second, for those who shuffle only

        share = math.exp(-epsilon)
        counts = _clone_counts(n - 1, (n - 1) * share)
        below = binom.cdf(counts - 1, n - 1, share)
        relevant = below < _SURE
        relevant[: np.searchsorted(below, _RARE * delta, side="right") - 1] = False
        relevant[0] = True
        return cls(epsilon, counts[relevant], below[relevant])

    def delta(self, epsilon: float) -> float:
        """Return a delta that holds with ``epsilon``, at most the local one.

        The mean over C by parts, so that every term is positive.
        """
        divergences = np.minimum.accumulate(
            _divergence(self.counts, self.epsilon, epsilon)
        )
        differences = (divergences[:-1] - divergences[1:]) @ self.below[1:]
        return float(divergences[-1] + differences * (1 + SLACK))


def _clone_counts(most: int, mean: float) -> Index:
    """Return 0 and the representative clone counts near the mean."""
    last = math.log(max(most, FINE_COUNT) / FINE_COUNT) / math.log(CLONE_STEP)
    coarse = np.floor(FINE_COUNT * CLONE_STEP ** np.arange(int(last) + 1)).astype(
        np.int64
    )
    candidates = np.concatenate([np.arange(FINE_COUNT), np.unique(coarse)])
    reach = _WINDOW * (math.sqrt(mean) + 1)
    first, end = np.searchsorted(
        candidates, [mean - reach, min(mean + reach, most + 1)]
    )
    return np.concatenate([[0], candidates[max(first - 1, 1) : end]])


def _divergence(clones: Index, local: float, epsilon: float) -> Array:
    """Return the hockey-stick divergence given C clones, rounded upwards.

    Of c + 1 messages k are U. P(k)/Q(k) rises in k and is above e^epsilon from k0 on;
    with b the law Bin(c, 1/2) and p = e^local the sum from there is

        (p - e^epsilon)/(p + 1) b(k0 - 1) - (e^epsilon - 1) b(k >= k0).
    """
    from scipy.stats import binom

    # Of numerator and denominator the factor p + 1 is left out.
    beyond = np.expm1(local + epsilon) / (np.expm1(local) * (1 + np.exp(epsilon)))
    first = np.floor((clones + 1) * beyond) + 1
    # (p - e^epsilon)/(p + 1), for large p, too
    edge = -np.expm1(epsilon - local) / (1 + np.exp(-local))
    gain = edge * binom.pmf(first - 1, clones, 0.5)
    loss = np.expm1(epsilon) * binom.sf(first - 1, clones, 0.5)
    return np.asarray(np.maximum(gain * (1 + SLACK) - loss * (1 - SLACK), 0))
