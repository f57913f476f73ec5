"""Privacy accounting: composition of losses and amplification by shuffling.

R is epsilon-private, p = e^epsilon, and two tables differ in one client's record, x or
x', with the laws P and Q of its message. Feldman, McMillan & Talwar (2021), "Hiding
among the clones", write both as mixtures and find clones of the client among the
others. Here the clones are those of their stronger analysis (2023), for every such R:

Every other record's law is at least B = max(P, Q)/p in each point. So the privacy
blanket (`curvote.base.blanket`) holds with this B: delta(eps) <= E[max(X_1 + ... + X_n,
0)]/n, where X is (P - t Q)/B on B, 0 with the mass that B lacks, and t = e^eps <= p.
With the total variation beta of P and Q and a = beta/(p - 1) <= 1/(p + 1),

    P = p a U + a V + N,  Q = a U + p a V + N,  B = a U + a V + N/p,

U and V being the normed positive parts of P - Q and Q - P, and N what is left, nowhere
negative. Telling U, V and N apart only raises X in the convex order; then it is p - t
and 1 - p t, with mass a each, and p (1 - t) on N/p. A larger a replaces of the latter,
and of the 0, what lies between the former two and has the same sum: higher again. With
a = 1/(p + 1) there is no N, and what remains is the law of two symbols,

    C ~ Bin(n - 1, 2/(p + 1)),  A ~ Bin(C, 1/2),  D ~ Bernoulli(p/(p + 1)),
    (A + D, C - A + 1 - D)  against  (A + 1 - D, C - A + D).

It is that of randomized response of a bit, for which nothing is lost before the counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.blanket import Blanket
from curvote.base.errors import UserError
from curvote.base.privacy import ZCDP, Budget

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


def numerical_bound(
    epsilon: float, n: int, delta: float, share: float | None = None
) -> float:
    """Return the least epsilon' that the clones give, rounded upwards.

    ``share`` is how many of the others are clones, 2/(p + 1) by default; 1/p are those
    of 2021.
    """
    if epsilon > LARGEST_LOCAL_EPSILON:
        return epsilon
    share = share or 2 / (1 + 1 / math.exp(-epsilon))
    clones = _Clones.of(epsilon, n, delta, share)
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
    def of(cls, epsilon: float, n: int, delta: float, share: float) -> _Clones:
        from scipy.stats import binom  # a second, for those who shuffle only

        # 0 and the representative clone counts near their mean.
        most, mean = n - 1, (n - 1) * share
        last = math.log(max(most, FINE_COUNT) / FINE_COUNT) / math.log(CLONE_STEP)
        coarse = np.floor(FINE_COUNT * CLONE_STEP ** np.arange(int(last) + 1))
        every = np.arange(FINE_COUNT), np.unique(coarse.astype(np.int64))
        candidates = np.concatenate(every)
        reach = _WINDOW * (math.sqrt(mean) + 1)
        ends = [mean - reach, min(mean + reach, most + 1)]
        first, end = np.searchsorted(candidates, ends)
        counts = np.concatenate([[0], candidates[max(first - 1, 1) : end]])
        below = binom.cdf(counts - 1, n - 1, share)
        relevant = below < _SURE
        relevant[: np.searchsorted(below, _RARE * delta, side="right") - 1] = False
        relevant[0] = True
        return cls(epsilon, counts[relevant], below[relevant])

    def delta(self, epsilon: float) -> float:
        """Return a delta that holds with ``epsilon``, at most the local one.

        The mean over C by parts, so that every term is positive.
        """
        divergences = _divergence(self.counts, self.epsilon, epsilon)
        divergences = np.minimum.accumulate(divergences)
        differences = (divergences[:-1] - divergences[1:]) @ self.below[1:]
        return float(divergences[-1] + differences * (1 + SLACK))


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


# Losses are rounded upwards to whole multiples of it: a hair above 1e-4, so that the
# rounding error of a loss such as 1 does not lift it by a whole step.
LOSS_STEP = 1e-4 * (1 + 1e-12)
# Above it a release is as good as public, and its losses would fill the memory.
LARGEST_COMPOSED_EPSILON = 100.0
# The loss of Gaussian noise has mean ratio^2/2, the ratio being diameter/sigma.
LARGEST_RATIO = 14.0


@dataclass(frozen=True)
class Losses:
    """The privacy losses of a client's releases; ``+`` composes further ones."""

    _distribution: Any

    def __add__(self, other: Losses) -> Losses:
        return Losses(self._distribution.compose(other._distribution))

    def times(self, n: int) -> Losses:
        """Return the losses of ``n`` >= 1 such releases with fresh noise."""
        return Losses(self._distribution.self_compose(validate.at_least(1, n=n)))

    def delta(self, epsilon: float) -> float:
        """Return a delta, in [0, 1], that holds with ``epsilon`` >= 0."""
        if not 0 <= epsilon < math.inf:
            raise UserError(f"epsilon is {epsilon!r}; it must be finite, at least 0.")
        return float(self._distribution.get_delta_for_epsilon(epsilon))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon that holds with ``delta``, 0 <= delta < 1.

        A delta below what the releases need is a UserError; composing takes 1e-15.
        """
        if not 0 <= delta < 1:
            raise UserError(f"delta is {delta!r}; it must lie in [0, 1).")
        epsilon = float(self._distribution.get_epsilon_for_delta(delta))
        if math.isinf(epsilon):
            raise UserError(f"delta is {delta!r}; no epsilon holds with so little.")
        return epsilon

    def to_budget(self, delta: float) -> Budget:
        """Return the (epsilon, delta) budget that the releases spend."""
        return Budget(max(self.epsilon(delta), math.ulp(0.0)), delta)


def compose_releases(releases: Iterable[tuple[Budget, float | None]]) -> Budget:
    """Return the joint cost, for each record, of releases about it.

    Each is given by its budget and its rho, None where that is not known. At the sum of
    the deltas epsilon is the sum of the epsilons, or, where all have noise of a known
    rho, what the sum of these allows (`ZCDP`), if that is less. It holds for a release
    that was made in view of the others, too, and for records that stand in some only.
    """
    budgets, rhos = zip(*releases, strict=True)
    summed = Budget(*map(math.fsum, zip(*map(astuple, budgets), strict=True)))
    if None in rhos or not summed.delta:
        return summed
    return min(summed, ZCDP(math.fsum(rhos)).to_budget(summed.delta))


def _losses(mechanism: str, *args: Any) -> Losses:
    from dp_accounting.pld import privacy_loss_distribution

    make = getattr(privacy_loss_distribution, f"from_{mechanism}")
    return Losses(make(*args, value_discretization_interval=LOSS_STEP))


def _bounded_epsilon(epsilon: float) -> float:
    if validate.positive(epsilon=epsilon) > LARGEST_COMPOSED_EPSILON:
        raise UserError(
            f"epsilon is {epsilon!r}; losses are composed up to"
            f" {LARGEST_COMPOSED_EPSILON:g}."
        )
    return float(epsilon)


def pure_dp_losses(epsilon: float) -> Losses:
    """Return the worst losses that any epsilon-private release may have.

    ``0 < epsilon <= 100`` (Kairouz, Oh & Viswanath 2015).
    """
    return randomized_response_losses(epsilon, 2)


def randomized_response_losses(epsilon: float, n_classes: int) -> Losses:
    """Return the losses of one of ``n_classes`` labels by randomized response.

    It is kept e^epsilon times as likely as turned into any one other label.
    """
    odds = math.exp(-_bounded_epsilon(epsilon))
    n_classes = validate.at_least(2, n_classes=n_classes)
    # The library's parameter: the share of labels that are drawn uniformly instead.
    uniform = n_classes * odds / (1 + (n_classes - 1) * odds)
    return _losses("randomized_response", uniform, n_classes)


def laplace_losses(epsilon: float) -> Losses:
    """Return the losses of Laplace noise of scale (the value's range) / epsilon."""
    return _losses("laplace_mechanism", 1 / _bounded_epsilon(epsilon))


def gaussian_losses(sigma: float, diameter: float) -> Losses:
    """Return the losses of Gaussian noise of standard deviation ``sigma``.

    ``diameter`` is the largest L2 distance of two records: 2 sqrt(d) for [-1, 1]^d.
    """
    ratio = validate.positive(diameter=diameter) / validate.positive(sigma=sigma)
    if ratio > LARGEST_RATIO:
        raise UserError(
            f"sigma is {sigma!r}; losses are composed from {1 / LARGEST_RATIO:.2g} of"
            f" the diameter {diameter!r} on."
        )
    return _losses("gaussian_mechanism", 1 / ratio)


@dataclass(frozen=True)
class TruncatedGaussian:
    """Vectors in a ball, noised by Gaussian noise, beside a part that is pure.

    The noise has ``sigma`` in each of ``d`` coordinates, or is subgaussian with it as
    the discrete one is, the ball the ``radius``; ``pure`` is the other part's epsilon.
    """

    pure: float
    sigma: float
    radius: float
    d: int

    def epsilon(self, n: int, delta: float, most: float) -> float:
        """Return an epsilon' that holds with ``delta`` for n shuffled messages.

        ``most``, if it is not below that. Given that it is at most ``reach`` from 0, a
        message's density changes by exp(2 radius reach/sigma^2) at most, from one end
        of a diameter to the other. Half of ``delta`` pays for the n messages that may
        be further out, by Hsu, Kakade & Zhang (2012), theorem 2.1, and their factor
        1 + e^epsilon'.
        """
        tail = delta / 2 / (n * (1 + math.exp(most)))
        logs = -math.log(tail)
        noise = math.sqrt(self.d + 2 * math.sqrt(self.d * logs) + 2 * logs)
        reach = self.radius + self.sigma * noise
        bounded = 2 * self.radius * reach / self.sigma**2 + 2 * tail
        return min(most, shuffled_epsilon(self.pure + bounded, n, delta / 2))


def shuffled_epsilon(
    epsilon: float, n: int, delta: float, blanket: Blanket | None = None
) -> float:
    """Return an epsilon' that holds with ``delta`` for shuffled messages.

    Each of ``n`` >= 1 clients sends one message of a mechanism that is private at
    0 < ``epsilon`` < inf, delta 0, and somebody sees all of them, shuffled, and no
    more. Replace-one: (epsilon', ``delta``), 0 < ``delta`` < 1, bounds what one record
    changes. The least of two proven bounds (`curvote.base.accounting`), never above
    ``epsilon`` and falling with ``n``; with the ``blanket`` of the message's own law
    it may be less. Other values are a UserError.
    """
    local_epsilon = validate.positive(epsilon=epsilon)
    arguments = local_epsilon, validate.at_least(1, n=n), validate.fraction(delta=delta)
    bounds = closed_form_bound(*arguments), numerical_bound(*arguments)
    least = min(local_epsilon, *bounds)
    if blanket is None or local_epsilon > LARGEST_LOCAL_EPSILON:
        return least
    return blanket.epsilon(n, delta, least)
