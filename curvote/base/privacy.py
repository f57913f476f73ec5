"""Privacy budgets (epsilon, delta), their arithmetic, and releases per row."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.entropy import RandomState
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


Counts = NDArray[np.int64]

# Fits of clones in this process, by class: searches may fit them in several.
_clone_fits: Counter[str] = Counter()


class ReleaseCounter:
    """An estimator mixin that counts how often ``fit`` released each row.

    ``releases_`` (n,) says of each place how many fits had a row there and released it,
    ``private_`` is False as soon as one of them drew noise that somebody can repeat.
    Rows are told apart by their places alone: nothing of them is kept to know them by.
    """

    random_state: RandomState
    releases_: Counts | None
    private_: bool | None
    spent_: Any

    # What to do in the place of a cross-validation.
    alternative: ClassVar[str] = "Choose on public or simulated data."

    def _record_spending(self, budget: Budget, released: Counts) -> None:
        """Record a fit that spends ``budget`` on the released rows."""
        before: Budget | None = getattr(self, "spent_", None)
        self.spent_ = budget if before is None else before + budget
        self._count_releases(released)

    def _count_releases(self, released: Counts) -> None:
        """Add the releases of each row (n,), 0 or 1, to the counts.

        To be called before anything is drawn; a later failure takes nothing back.
        """
        before = getattr(self, "releases_", None)
        if before is not None:  # the shorter is padded with zeros
            total = np.zeros(max(len(before), len(released)), dtype=np.int64)
            total[: len(before)] += before
            total[: len(released)] += released
            released = total
        self.releases_ = released
        # One fit with known noise is enough to know the record.
        seeded_before = getattr(self, "private_", None) is False
        self.private_ = not seeded_before and self.random_state is None
        self._warn_about_clones()

    def __sklearn_clone__(self) -> Any:
        """Return a clone, which is marked as one and counts anew."""
        clone = super().__sklearn_clone__()  # type: ignore[misc]  # BaseEstimator's
        vars(clone)["_cloned"] = True
        return clone

    def _warn_about_clones(self) -> None:
        """Warn once in a process that fits of clones spend separately."""
        kind = type(self).__name__
        if not vars(self).get("_cloned") or self.random_state is not None:
            return
        _clone_fits[kind] += 1
        if _clone_fits[kind] != 2:
            return
        warnings.warn(
            f"{kind} was cloned and fitted twice: each fit releases its"
            " rows anew, and spent_ of one clone knows nothing of the others. In k"
            " folds a row spends (k - 1) epsilon, in a search over g candidates"
            f" (g (k - 1) + 1) epsilon. {self.alternative} Said once.",
            UserWarning,
            stacklevel=4,
        )


def one_release_each(n: int) -> Counts:
    """Return a count of one release for each of ``n`` rows."""
    return np.ones(n, dtype=np.int64)


def refuse_weights(model: object, keywords: dict[str, Any]) -> None:
    """Refuse a ``sample_weight`` among the extra keywords of a fit."""
    for name, value in keywords.items():
        if name != "sample_weight":
            raise TypeError(
                f"{type(model).__name__}.fit() got an unexpected keyword argument"
                f" {name!r}"
            )
        if value is not None:
            raise UserError(
                "sample_weight is refused: each row releases one message at one epsilon"
                " for all. A weight would be a budget of its row's own, or a number its"
                " owner would have to reveal. Leave rows out instead."
            )
