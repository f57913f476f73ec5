"""Exact amounts of privacy budget, and the entries of a ledger as values.

A budget counts as the decimal number that it is written as: ten releases of 0.1 make
exactly 1. (As a binary fraction 0.1 is slightly more than 1/10, and ten of them would
not fit into a cap of 1; summed as doubles, many small releases could vanish.) The
decimal text of a double differs from it by less than one part in 10^15.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation

from curvote.privacy import Budget

# Sums of doubles, 1e-324 to 1e308, need fewer than 700 digits; rounding is an error.
EXACT_CONTEXT = Context(prec=1000, traps=[Inexact, InvalidOperation, DivisionByZero])
# A cap that was divided by n in floating point must hold n such releases: parts may be
# some units in the last place too large. The room for that is absolute: a share of the
# cap would grow with it. A cap without delta has no room for any.
EPSILON_ROOM = Decimal("1e-10")
DELTA_ROOM = Decimal("1e-18")


@dataclass(frozen=True)
class Amount:
    """An exact amount (epsilon, delta) of spent budget, possibly zero."""

    epsilon: Decimal = Decimal(0)
    delta: Decimal = Decimal(0)

    @classmethod
    def from_budget(cls, budget: Budget) -> Amount:
        """Return a budget as an exact decimal amount."""
        return cls.from_texts(
            repr(float(budget.epsilon)), repr(abs(float(budget.delta)))
        )

    @classmethod
    def from_texts(cls, epsilon: str, delta: str) -> Amount:
        """Return the amount that `texts` wrote."""
        return cls(
            EXACT_CONTEXT.create_decimal(epsilon), EXACT_CONTEXT.create_decimal(delta)
        )

    def to_texts(self) -> tuple[str, str]:
        """Return epsilon and delta as canonical decimal text."""
        return str(EXACT_CONTEXT.normalize(self.epsilon)), str(
            EXACT_CONTEXT.normalize(self.delta)
        )

    def plus(self, other: Amount) -> Amount:
        """Return the sum: sequential composition (Dwork & Roth 2014, theorem 3.14)."""
        return Amount(
            EXACT_CONTEXT.add(self.epsilon, other.epsilon),
            EXACT_CONTEXT.add(self.delta, other.delta),
        )

    def minus(self, other: Amount) -> Amount:
        """Return the difference: ``other`` taken away."""
        return Amount(
            EXACT_CONTEXT.subtract(self.epsilon, other.epsilon),
            EXACT_CONTEXT.subtract(self.delta, other.delta),
        )

    def within(self, cap: Amount) -> bool:
        """Return whether neither part exceeds the cap beyond rounding."""
        room = DELTA_ROOM if cap.delta else Decimal(0)
        return self.epsilon <= EXACT_CONTEXT.add(
            cap.epsilon, EPSILON_ROOM
        ) and self.delta <= EXACT_CONTEXT.add(cap.delta, room)

    def at_least(self, other: Amount) -> bool:
        """Return whether neither part is below the other's, exactly."""
        return self.epsilon >= other.epsilon and self.delta >= other.delta

    def budget(self) -> Budget:
        """Return the amount as a budget, rounded up."""
        return Budget(*self.to_floats())

    def least(self, other: Amount) -> Amount:
        """Return the lower of each part."""
        return Amount(min(self.epsilon, other.epsilon), min(self.delta, other.delta))

    def most(self, other: Amount) -> Amount:
        """Return the higher of each part."""
        return Amount(max(self.epsilon, other.epsilon), max(self.delta, other.delta))

    def to_floats(self) -> tuple[float, float]:
        """Return epsilon and delta as floats, rounded up."""
        return _float_up(self.epsilon), _float_up(self.delta)

    def __str__(self) -> str:
        epsilon, delta = self.to_floats()
        return f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else "")


def _float_up(exact: Decimal) -> float:
    nearest = float(exact)
    short = Decimal(repr(nearest)) < exact
    return math.nextafter(nearest, math.inf) if short else nearest
