"""The servers of DTK as its rates see them: the target first, then the sources."""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Servers:
    """Checked sizes, budgets and signal exponents, each (m + 1,), the target first."""

    n: FloatArray
    epsilon: FloatArray
    gamma: FloatArray
    beta: float
    d: int

    @classmethod
    def of(
        cls, n: ArrayLike, epsilon: ArrayLike, gamma: ArrayLike, beta: float, d: int
    ) -> Servers:
        """Return checked servers.

        ``n`` holds a size for each server, the target first. ``epsilon`` and ``gamma``
        are one number for all or one for each; an epsilon of infinity is a public
        server, and the target's gamma is 1 whatever stands in its place. beta in
        (0, 1] is the target's smoothness, d the number of features. UserError for sizes
        below 1 and for values that are not above 0.
        """
        sizes = np.atleast_1d(validate.finite(n=n))
        if sizes.ndim > 1 or (sizes < 1).any():
            raise UserError("n holds one size of at least 1 for each server.")
        exponents = np.array(gamma, dtype=np.float64)
        if exponents.ndim:
            exponents[:1] = 1.0
        checked = validate.finite(gamma=_per_server("gamma", exponents, sizes))
        checked[0] = 1.0
        return cls(
            n=sizes,
            epsilon=_per_server("epsilon", epsilon, sizes),
            gamma=checked,
            beta=check_smoothness(beta),
            d=validate.at_least(1, d=d),
        )

    @property
    def power(self) -> FloatArray:
        """Exponents 2 beta gamma_j + d, where gamma_0 is 1."""
        return 2 * self.beta * self.gamma + self.d

    def log_precision(self, log_r: float) -> FloatArray:
        """Return the logarithms of n_j ^ n_j^2 epsilon_j^2 r^d (after theorem 3.4)."""
        private = 2 * (np.log(self.n) + np.log(self.epsilon)) + self.d * log_r
        return np.asarray(np.minimum(np.log(self.n), private))

    def radius(self, level: float = 1.0) -> float:
        """Return r of (5), of (11) at its ``level``: there the left-hand side is it.

        Each server alone needs at least as large a radius; one of them gives 1/(m + 1)
        of the level at least. Between these ends the root is found in log r.
        """
        from scipy.optimize import brentq

        alone_end = self.alone(np.log(level)).min()
        shared_end = self.alone(np.log(level / self.n.size)).min()
        ends = shared_end - 1e-9, alone_end + 1e-9  # rounding
        log_r = brentq(self._log_excess, *ends, (np.log(level),), xtol=1e-14)
        return float(np.exp(log_r))

    def _log_excess(self, log_r: float, log_level: float) -> float:
        """Return the left-hand side of (5) minus the level, in logarithms."""
        terms = self.log_precision(log_r) + self.power * log_r
        return float(np.logaddexp.reduce(terms) - log_level)

    def alone(self, log_level: float) -> FloatArray:
        """Return the log r at which each server's own term in (5) is the level."""
        free = (log_level - np.log(self.n)) / self.power
        noised = log_level - 2 * (np.log(self.n) + np.log(self.epsilon))
        return np.asarray(np.maximum(free, noised / (self.power + self.d)))


def check_smoothness(beta: float) -> float:
    """Return beta in (0, 1] (definition 2.4); anything else is a UserError."""
    if not 0 < beta <= 1:
        raise UserError(f"beta is {beta!r}; smoothness lies above 0 and up to 1.")
    return float(beta)


def target_level(epsilon: ArrayLike, delta: ArrayLike | None, count: int) -> float:
    """Return the right-hand side: 1 of (5), log(2/delta_min) of (11).

    A public server (infinite epsilon) adds no noise; its delta does not count.
    """
    if delta is None:
        return 1.0
    deltas = np.broadcast_to(np.asarray(delta, dtype=np.float64), (count,))
    noised = deltas[np.isfinite(np.broadcast_to(epsilon, (count,)))]
    if noised.size == 0:
        return 1.0
    least = float(validate.finite(delta=noised).min())
    return float(np.log(2 / validate.fraction(delta=least)))


def _per_server(name: str, numbers: ArrayLike, sizes: FloatArray) -> FloatArray:
    """Return one number above 0 for each server; infinity may be among them."""
    values = np.asarray(numbers, dtype=np.float64)
    if values.shape not in {(), sizes.shape}:
        raise UserError(
            f"{name} has shape {values.shape}; give one number, or one for each of the"
            f" {sizes.size} servers, the target first."
        )
    if not (values > 0).all():  # NaN is not above 0, either
        raise UserError(f"{name} holds {values.min()}; every value must be above 0.")
    return np.array(np.broadcast_to(values, sizes.shape))


Names = NDArray[np.str_]
NOTHING = "1"
TARGET = "NPt"
TARGET_PRIVATE = "Pt"
SOURCES = "NPs"
SOURCES_PRIVATE = "Ps"


class Sizes(TypedDict):
    """Sizes and exponents of a setting: n0, n, m, beta, d and gamma."""

    n0: int
    n: int
    m: int
    beta: float
    d: int
    gamma: float


# Boundaries of the regimes (corollary 3.2): one of gamma, five of epsilon.
Regimes = namedtuple("Regimes", "gamma_star eps_1 eps_2 eps_3 eps_11 eps_21")
# The epsilon at which another rate begins to decide.
Switch = namedtuple("Switch", "epsilon before after")


class RateLine(NamedTuple):
    """Logarithm of 1/r by one rate of (4), linear in log epsilon."""

    name: str
    level: float
    slope: float = 0.0

    def at(self, log_epsilon: FloatArray) -> FloatArray:
        """Return the logarithm of 1/r at each log epsilon."""
        return self.level + self.slope * log_epsilon


@dataclass(frozen=True)
class Case:
    """Checked sizes and exponents; sizes as logarithms."""

    n0: float
    n: float
    m: float
    beta: float
    d: int
    gamma: float

    @classmethod
    def of(cls, *, ordered: bool = False, **sizes: Unpack[Sizes]) -> Case:
        """Return the checked case; the table asks for n <= n0 <= m n (``ordered``)."""
        n0, n, m = sizes["n0"], sizes["n"], sizes["m"]
        if ordered and not max(n, 2) <= n0 <= m * n:
            raise UserError(
                f"n0 is {n0}; corollary 3.2 asks for n <= n0 <= m n and 2 or more, here"
                f" {max(n, 2)} to {m * n}. `brute` knows other sizes."
            )
        return cls(
            n0=math.log(validate.at_least(1, n0=n0)),
            n=math.log(validate.at_least(1, n=n)),
            m=math.log(validate.at_least(1, m=m)),
            beta=check_smoothness(sizes["beta"]),
            d=validate.at_least(1, d=sizes["d"]),
            gamma=validate.positive(gamma=sizes["gamma"]),
        )

    @property
    def noise(self) -> float:
        """Logarithm of sqrt(m) n, by which the sources' noise is divided."""
        return self.m / 2 + self.n

    @property
    def gamma_star(self) -> float:
        """Gamma above which the sources do not help at large epsilon."""
        beta, d = self.beta, self.d
        return ((2 * beta + d) * (self.m + self.n) / self.n0 - d) / (2 * beta)

    def lines(self) -> tuple[RateLine, RateLine, RateLine, RateLine]:
        """Return the lines of the rates NPt, Pt, NPs and Ps of (4)."""
        beta, d, source = self.beta, self.d, self.beta * self.gamma
        return (
            RateLine(TARGET, self.n0 / (2 * beta + d)),
            RateLine(TARGET_PRIVATE, self.n0 / (beta + d), 1 / (beta + d)),
            RateLine(SOURCES, (self.m + self.n) / (2 * source + d)),
            RateLine(SOURCES_PRIVATE, self.noise / (source + d), 1 / (source + d)),
        )


def regimes(*, as_printed: bool = False, **sizes: Unpack[Sizes]) -> Regimes:
    """Return the boundaries of the regimes (corollary 3.2), for n <= n0 <= m n.

    ``as_printed`` gives eps(21) with the paper's exponent, whose denominator is
    beta + d instead of 2 beta + d.
    """
    case = Case.of(**sizes, ordered=True)
    ends = map(exp_or_inf, _log_ends(case, as_printed))
    return Regimes(case.gamma_star, *ends)


def _log_ends(case: Case, as_printed: bool) -> tuple[float, float, float, float, float]:
    """Return the logarithms of eps(1), eps(2), eps(3), eps(11) and eps(21)."""
    beta, d, source = case.beta, case.d, case.beta * case.gamma
    first = -max(case.noise, case.n0)
    second = -beta * case.n0 / (2 * beta + d)
    third = (d / 2 * case.m - source * case.n) / (2 * source + d)
    if case.gamma == 1:
        eleven = first if case.n0 <= case.noise else second
    else:
        power = (beta + d) * case.noise - (source + d) * case.n0
        eleven = power / (beta * (case.gamma - 1))
    below = beta + d if as_printed else 2 * beta + d
    return first, second, third, eleven, (source + d) / below * case.n0 - case.noise


def exp_or_inf(log: float) -> float:
    """Return e^log, infinite where no float holds it: eps(11) near gamma 1."""
    return math.exp(log) if log < 709 else math.inf


def dominant(
    *, epsilon: ArrayLike, as_printed: bool = False, **sizes: Unpack[Sizes]
) -> str | Names:
    """Return the name of the deciding rate by table 1, for each epsilon.

    A number gives a text, an array an array of texts. Corrected: eps(21), and the row
    gamma <= 1, whose third column begins with NPt up to eps(21) where that exceeds
    eps(2); ``as_printed`` leaves both out.
    """
    case = Case.of(**sizes, ordered=True)
    first, second, third, eleven, twenty_one = _log_ends(case, as_printed)
    log = _log_epsilon(epsilon)
    near_rate, far_rate = TARGET_PRIVATE, SOURCES_PRIVATE
    if case.gamma > 1:
        near_rate, far_rate = far_rate, near_rate
    late_end = twenty_one
    if case.gamma <= 1 and as_printed:
        late_end = -math.inf
    if case.gamma > case.gamma_star:
        late_end, third = math.inf, math.inf
    conditions = [log <= first, log <= second, log <= third]
    columns = [
        np.full(log.shape, NOTHING),
        np.where(log <= eleven, near_rate, far_rate),
        np.where(log <= late_end, TARGET, SOURCES_PRIVATE),
    ]
    return _unwrap_text(np.select(conditions, columns, SOURCES))


def dominant_by_comparison(
    *, epsilon: ArrayLike, **sizes: Unpack[Sizes]
) -> str | Names:
    """Return the name of the deciding rate by comparing the four rates of (4)."""
    case = Case.of(**sizes)
    return _unwrap_text(_deciding_rate(case, _log_epsilon(epsilon))[0])


def log_risk(
    epsilon: ArrayLike, *, alpha: float = 1.0, **sizes: Unpack[Sizes]
) -> FloatArray:
    """Return the natural logarithm of the rate (4) without L_N, at most 0."""
    case = Case.of(**sizes)
    logs = -case.beta * (1 + alpha) * _deciding_rate(case, _log_epsilon(epsilon))[1]
    return np.asarray(logs + 0.0)  # 0, not -0


def switches(**sizes: Unpack[Sizes]) -> list[Switch]:
    """Return every epsilon at which the deciding rate of (4) changes, rising.

    Two rates can change places where their lines cross only: the rates are compared
    between any two of the crossings.
    """
    case = Case.of(**sizes)
    pairs = combinations([*case.lines(), RateLine(NOTHING, 0.0)], 2)
    ends = sorted(
        (b.level - a.level) / (a.slope - b.slope)
        for a, b in pairs
        if a.slope != b.slope
    )
    between = [ends[0] - 1, *((a + b) / 2 for a, b in pairwise(ends)), ends[-1] + 1]
    names = _deciding_rate(case, np.array(between))[0].tolist()
    changes = zip(ends, pairwise(names), strict=True)
    return [Switch(exp_or_inf(at), *pair) for at, pair in changes if pair[0] != pair[1]]


def rate_lines(**sizes: Unpack[Sizes]) -> tuple[RateLine, RateLine, RateLine, RateLine]:
    """Return log 1/r by each of the four rates of (4): NPt, Pt, NPs and Ps."""
    return Case.of(**sizes).lines()


def _deciding_rate(case: Case, log: FloatArray) -> tuple[Names, FloatArray]:
    """Return the deciding rate's name and log 1/r, which is at least 0."""
    target, target_noise, source, source_noise = case.lines()
    target_name, best = _worse_rate(target, target_noise, log)
    source_name, helped = _worse_rate(source, source_noise, log)
    name = np.where(best >= helped, target_name, source_name)
    level = np.maximum(best, helped)
    return np.where(level > 0, name, NOTHING), np.maximum(level, 0.0)


def _worse_rate(
    first: RateLine, second: RateLine, log: FloatArray
) -> tuple[Names, FloatArray]:
    """Return the worse of two rates, which one server's records allow."""
    a, b = first.at(log), second.at(log)
    return np.where(a <= b, first.name, second.name), np.minimum(a, b)


def _log_epsilon(epsilon: ArrayLike) -> FloatArray:
    """Return log epsilon; an epsilon that is not above 0 is a UserError."""
    values = validate.finite(epsilon=epsilon)
    if (values <= 0).any():
        raise UserError(f"epsilon is {values.min():g}; it must be above 0.")
    return np.asarray(np.log(values))


def _unwrap_text(names: Names) -> str | Names:
    """Return an array of names, or the name alone where there is one."""
    return names if names.ndim else str(names)
