"""Exact sums of budgets: no release is ever lost in a rounding error.

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
EXACT = Context(prec=1000, traps=[Inexact, InvalidOperation, DivisionByZero])
# A cap that was divided by n in floating point must hold n such releases: parts may be
# some units in the last place too large. The room for that is absolute: a share of the
# cap would grow with it. A cap without delta has no room for any.
EPSILON_ROOM = Decimal("1e-10")
DELTA_ROOM = Decimal("1e-18")


@dataclass(frozen=True)
class Amount:
    """An (epsilon, delta) that was spent, exact, and possibly zero."""

    epsilon: Decimal = Decimal(0)
    delta: Decimal = Decimal(0)

    @classmethod
    def of(cls, budget: Budget) -> Amount:
        """Return the budget as it is written."""
        return cls.read(repr(float(budget.epsilon)), repr(abs(float(budget.delta))))

    @classmethod
    def read(cls, epsilon: str, delta: str) -> Amount:
        """Return what `texts` wrote."""
        return cls(EXACT.create_decimal(epsilon), EXACT.create_decimal(delta))

    def texts(self) -> tuple[str, str]:
        """Return epsilon and delta as text: one text for each value."""
        return str(EXACT.normalize(self.epsilon)), str(EXACT.normalize(self.delta))

    def plus(self, other: Amount) -> Amount:
        """Return the sum: sequential composition (Dwork & Roth 2014, theorem 3.14)."""
        return Amount(
            EXACT.add(self.epsilon, other.epsilon), EXACT.add(self.delta, other.delta)
        )

    def minus(self, other: Amount) -> Amount:
        """Return what is left when ``other`` is taken back."""
        return Amount(
            EXACT.subtract(self.epsilon, other.epsilon),
            EXACT.subtract(self.delta, other.delta),
        )

    def within(self, cap: Amount) -> bool:
        """Say whether neither part exceeds the cap by more than its rounding."""
        room = DELTA_ROOM if cap.delta else Decimal(0)
        return self.epsilon <= EXACT.add(
            cap.epsilon, EPSILON_ROOM
        ) and self.delta <= EXACT.add(cap.delta, room)

    def at_least(self, other: Amount) -> bool:
        """Say whether neither part is below the other's, exactly."""
        return self.epsilon >= other.epsilon and self.delta >= other.delta

    def budget(self) -> Budget:
        """Return it as a budget whose decimal text is not below it."""
        return Budget(*self.floats())

    def least(self, other: Amount) -> Amount:
        """Return the lower of each part."""
        return Amount(min(self.epsilon, other.epsilon), min(self.delta, other.delta))

    def most(self, other: Amount) -> Amount:
        """Return the higher of each part."""
        return Amount(max(self.epsilon, other.epsilon), max(self.delta, other.delta))

    def floats(self) -> tuple[float, float]:
        """Return epsilon and delta as doubles whose decimal text is not below them."""
        return _at_least(self.epsilon), _at_least(self.delta)

    def __str__(self) -> str:
        epsilon, delta = self.floats()
        return f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else "")


def _at_least(exact: Decimal) -> float:
    nearest = float(exact)
    short = Decimal(repr(nearest)) < exact
    return math.nextafter(nearest, math.inf) if short else nearest
