"""Privacy accounting: composition of losses (dp-accounting) and shuffling bounds.

A client's releases are composed as distributions of their privacy losses (Koskela,
Jalko & Honkela 2020), each rounded upwards to a grid, so every answer is a true bound.
Adjacency is replace-one, as in `curvote.privacy`: every release below is given by the
two laws that replacing the client's record can make most different. dp-accounting's
own relation ``REPLACE_SPECIAL`` compares a record with none at all instead: for a
label by randomized response of epsilon 1 that understates the loss, so it is not used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from types import ModuleType
from typing import Any

from curvote import shuffling, validate
from curvote.errors import UserError
from curvote.privacy import ZCDP, Budget

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


def _load_dp_accounting() -> ModuleType:
    from dp_accounting.pld import privacy_loss_distribution

    module: ModuleType = privacy_loss_distribution
    return module


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
    return Losses(
        _load_dp_accounting().from_randomized_response(
            uniform, n_classes, value_discretization_interval=LOSS_STEP
        )
    )


def laplace_losses(epsilon: float) -> Losses:
    """Return the losses of Laplace noise of scale (the value's range) / epsilon."""
    return Losses(
        _load_dp_accounting().from_laplace_mechanism(
            1 / _bounded_epsilon(epsilon), value_discretization_interval=LOSS_STEP
        )
    )


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
    return Losses(
        _load_dp_accounting().from_gaussian_mechanism(
            1 / ratio, value_discretization_interval=LOSS_STEP
        )
    )


def shuffled_epsilon(epsilon: float, n: int, delta: float) -> float:
    """Return an epsilon' that holds with ``delta`` for shuffled messages.

    Each of ``n`` >= 1 clients sends one message of a mechanism that is private at
    0 < ``epsilon`` < inf, delta 0, and somebody sees all of them, shuffled, and no
    more. Replace-one: (epsilon', ``delta``), 0 < ``delta`` < 1, bounds what one record
    changes. The least of two proven bounds (`curvote.shuffling`), never above
    ``epsilon`` and falling with ``n``. Other values are a UserError.
    """
    local_epsilon = validate.positive(epsilon=epsilon)
    arguments = local_epsilon, validate.at_least(1, n=n), validate.fraction(delta=delta)
    return min(
        local_epsilon,
        shuffling.closed_form_bound(*arguments),
        shuffling.numerical_bound(*arguments),
    )
