"""Budgets: values with arithmetic, so that every spending can be written as a sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from curvote import validate
from curvote.errors import UserError


@dataclass(frozen=True, order=True)
class Budget:
    """An (epsilon, delta) differential-privacy budget under replace-one adjacency.

    ``0 < epsilon < inf`` and ``0 <= delta < 1``; anything else, NaN included, is a
    UserError. ``+`` is sequential composition (Dwork & Roth 2014, theorem 3.14).
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        validate.positive(epsilon=self.epsilon)
        if not 0 <= self.delta < 1:
            raise UserError(f"delta is {self.delta!r}; it must lie in [0, 1).")

    def __add__(self, other: Budget) -> Budget:
        return Budget(self.epsilon + other.epsilon, self.delta + other.delta)

    def part(self, share: float) -> Budget:
        """Return the ``share`` in (0, 1] of this budget."""
        if not 0 < share <= 1:
            raise UserError(f"share is {share!r}; it must lie in (0, 1].")
        return Budget(self.epsilon * share, self.delta * share)

    def split(self, share: float) -> tuple[Budget, Budget]:
        """Return two budgets, ``share`` and the rest, together at most this one."""
        validate.fraction(share=share)
        first = self.part(share)
        rest = self.epsilon - first.epsilon
        if Fraction(first.epsilon) + Fraction(rest) > Fraction(self.epsilon):
            rest = math.nextafter(rest, 0)
        return first, Budget(rest, self.delta - first.delta)

    def each(self, n: int) -> Budget:
        """Return one of ``n`` equal parts that add up to at most this budget."""
        validate.at_least(1, n=n)
        epsilon = self.epsilon / n
        if Fraction(epsilon) * n > Fraction(self.epsilon):
            epsilon = math.nextafter(epsilon, 0)
        return Budget(epsilon, self.delta / n)

    def __str__(self) -> str:
        tail = f", delta {self.delta:g}" if self.delta else ""
        return f"epsilon {self.epsilon:g}{tail}"


def label_share(share: float | str, d: int) -> float:
    """Return the part of a report's budget that its label gets.

    ``"equal"`` is 1/(d+1): the label counts as one more coordinate (MRMA section 5.1).
    """
    if share == "equal":
        return 1 / (d + 1)
    if isinstance(share, str):
        raise UserError(
            f"label_share is {share!r}; write equal, or a number in (0, 1)."
        )
    return validate.fraction(label_share=share)
