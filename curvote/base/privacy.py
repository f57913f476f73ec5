"""Privacy budgets (epsilon, delta), and their arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from curvote.base import validate
from curvote.base.errors import UserError

# Above it, delta alone could give away one person in ten thousand outright.
MAX_DELTA = 1e-4


def refuse_delta(delta: float, records: int = 1) -> float:
    """Return ``delta`` unless it is too large for ``records`` people.

    For one person's message at most 1e-4; for one object about a table of ``records``
    people at most 1 / ``records``: above that, publishing one of them would do.
    """
    most = MAX_DELTA if records == 1 else 1 / records
    if not delta <= most:
        whom = "one person's message" if records == 1 else f"a table of {records}"
        raise UserError(
            f"delta is {delta:g}: refused, whatever the cap. For {whom} at most"
            f" {most:g} is a promise at all."
        )
    return delta


@dataclass(frozen=True, order=True)
class Budget:
    """An (epsilon, delta) differential-privacy budget under replace-one adjacency.

    Parameters
    ----------
    epsilon : float
        0 < epsilon < inf.
    delta : float, default=0
        0 <= delta < 1. Anything else, NaN included, is a UserError, here and above.

    Notes
    -----
    ``+`` is sequential composition (Dwork & Roth 2014, theorem 3.14); ``|`` is parallel
    composition, the larger of each, for releases about different clients (McSherry
    2009, theorem 4).

    Examples
    --------
    >>> each = Budget(1.0).each(4)
    >>> print(Budget(1.0) + Budget(0.5, delta=1e-6), each, sep="; ")
    epsilon 1.5, delta 1e-06; epsilon 0.25
    >>> Budget(1.0) | Budget(0.5)  # about different clients
    Budget(epsilon=1.0, delta=0.0)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        validate.positive(epsilon=self.epsilon)
        if not validate.rule_holds(lambda: 0 <= self.delta < 1):
            raise UserError(
                f"delta is {validate.format_value(self.delta)}; it must lie in [0, 1)."
            )

    def __add__(self, other: Budget) -> Budget:
        return Budget(self.epsilon + other.epsilon, self.delta + other.delta)

    def __or__(self, other: Budget) -> Budget:
        return Budget(max(self.epsilon, other.epsilon), max(self.delta, other.delta))

    def part(self, share: float) -> Budget:
        """Return the ``share`` in (0, 1] of this budget."""
        if not validate.rule_holds(lambda: 0 < share <= 1):
            raise UserError(
                f"share is {validate.format_value(share)}; it must lie in (0, 1]."
            )
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
        """Return one of ``n`` equal parts whose sum is at most this budget."""
        validate.at_least(1, n=n)
        epsilon = self.epsilon / n
        if Fraction(epsilon) * n > Fraction(self.epsilon):
            epsilon = math.nextafter(epsilon, 0)
        return Budget(epsilon, self.delta / n)

    def __str__(self) -> str:
        tail = f", delta {self.delta:g}" if self.delta else ""
        return f"epsilon {self.epsilon:g}{tail}"


@dataclass(frozen=True, order=True)
class ZCDP:
    """A zero-concentrated budget rho, 0 < rho < inf (Bun & Steinke 2016).

    Gaussian noise of standard deviation sigma on a value of L2 sensitivity D, discrete
    or not, has rho = D^2 / (2 sigma^2). ``+`` is sequential composition.
    """

    rho: float

    def __post_init__(self) -> None:
        validate.positive(rho=self.rho)

    def __add__(self, other: ZCDP) -> ZCDP:
        return ZCDP(self.rho + other.rho)

    def to_budget(self, delta: float) -> Budget:
        """Return the least epsilon at ``delta``, 0 < delta < 1.

        With b > 0, epsilon = (1 + b) rho + (ln(1/delta) - ln(1 + b))/b + ln(b/(1 + b))
        (Canonne, Kamath & Steinke 2020, section 2.3, order 1 + b). It holds for every
        b, so a rough minimum is a valid one, and has no local minimum but the least.
        """
        from scipy.optimize import minimize_scalar

        rest = -math.log(validate.fraction(delta=delta))

        def epsilon(log_b: float) -> float:
            b = math.exp(log_b)
            more = math.log1p(b)
            return (1 + b) * self.rho + (rest - more) / b + log_b - more

        near = math.log(rest / self.rho) / 2
        minimum = minimize_scalar(
            epsilon, bounds=(near - 20, near + 20), options={"xatol": 1e-9}
        )
        # A budget is never 0, even where delta alone would do.
        return Budget(max(float(minimum.fun), math.ulp(0.0)), delta)


def label_budget_share(share: float | str, d: int) -> float:
    """Return the share of a report's budget that its label gets.

    ``"equal"`` is 1/(d+1): the label counts as one more coordinate (MRMA section 5.1).
    """
    if share == "equal":
        return 1 / (d + 1)
    if isinstance(share, str):
        raise UserError(
            f"label_share is {validate.format_value(share)}; write equal, or a number"
            " in"
            " (0, 1)."
        )
    return validate.fraction(label_share=share)
