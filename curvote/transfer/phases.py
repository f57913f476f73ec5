"""Which of four rates decides (DTK, table 1 and corollary 3.2), by table and by (4).

One target with ``n0`` records and ``m`` equal sources with ``n`` each, one epsilon for
all. Of the rates without and with the cost of privacy (NPt and Pt of the target, NPs
and Ps of the sources) one decides at every epsilon; ``1`` says that nothing is learnt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.transfer.servers import FloatArray, smoothness

Names = NDArray[np.str_]
NOTHING, TARGET, TARGET_PRIVATE, SOURCES, SOURCES_PRIVATE = (
    "1",
    "NPt",
    "Pt",
    "NPs",
    "Ps",
)


class Sizes(TypedDict):
    """Records of the target, of each source, sources; smoothness, numbers, gamma."""

    n0: int
    n: int
    m: int
    beta: float
    d: int
    gamma: float


class Regimes(NamedTuple):
    """The ends of the regimes (corollary 3.2): one of gamma, five of epsilon."""

    gamma_star: float
    eps_1: float
    eps_2: float
    eps_3: float
    eps_11: float
    eps_21: float


class Switch(NamedTuple):
    """An epsilon at which another rate begins to decide."""

    epsilon: float
    before: str
    after: str


class Line(NamedTuple):
    """The logarithm of 1/r by one rate of (4): linear in log epsilon."""

    name: str
    level: float
    slope: float = 0.0

    def at(self, log_epsilon: FloatArray) -> FloatArray:
        """Return the values."""
        return self.level + self.slope * log_epsilon


@dataclass(frozen=True)
class Case:
    """A checked setting; sizes as logarithms."""

    n0: float
    n: float
    m: float
    beta: float
    d: int
    gamma: float

    @classmethod
    def of(
        cls,
        *,
        n0: int,
        n: int,
        m: int,
        beta: float,
        d: int,
        gamma: float,
        ordered: bool = False,
    ) -> Case:
        """Check; a table is for n <= n0 <= m n (``ordered``) only."""
        if ordered and not max(n, 2) <= n0 <= m * n:
            raise UserError(
                f"n0 is {n0}; corollary 3.2 asks for n <= n0 <= m n and 2 or more, here"
                f" {max(n, 2)} to {m * n}. `brute` knows other sizes."
            )
        return cls(
            n0=math.log(validate.at_least(1, n0=n0)),
            n=math.log(validate.at_least(1, n=n)),
            m=math.log(validate.at_least(1, m=m)),
            beta=smoothness(beta),
            d=validate.at_least(1, d=d),
            gamma=validate.positive(gamma=gamma),
        )

    @property
    def noise(self) -> float:
        """The logarithm of sqrt(m) n, what the sources' noise is divided by."""
        return self.m / 2 + self.n

    @property
    def gamma_star(self) -> float:
        """The gamma above which the sources do not help at large epsilon."""
        beta, d = self.beta, self.d
        return ((2 * beta + d) * (self.m + self.n) / self.n0 - d) / (2 * beta)

    def lines(self) -> tuple[Line, Line, Line, Line]:
        """Return NPt, Pt, NPs and Ps of (4)."""
        beta, d, source = self.beta, self.d, self.beta * self.gamma
        return (
            Line(TARGET, self.n0 / (2 * beta + d)),
            Line(TARGET_PRIVATE, self.n0 / (beta + d), 1 / (beta + d)),
            Line(SOURCES, (self.m + self.n) / (2 * source + d)),
            Line(SOURCES_PRIVATE, self.noise / (source + d), 1 / (source + d)),
        )


def regimes(*, as_printed: bool = False, **sizes: Unpack[Sizes]) -> Regimes:
    """Return the ends of the regimes (corollary 3.2), for n <= n0 <= m n.

    ``as_printed`` gives eps(21) with the paper's exponent, whose denominator is
    beta + d instead of 2 beta + d.
    """
    case = Case.of(**sizes, ordered=True)
    ends = map(exp, _ends(case, as_printed))
    return Regimes(case.gamma_star, *ends)


def _ends(case: Case, as_printed: bool) -> tuple[float, float, float, float, float]:
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


def exp(log: float) -> float:
    """Return e^log, infinite where no float holds it: eps(11) near gamma 1."""
    return math.exp(log) if log < 709 else math.inf


def dominant(
    *, epsilon: ArrayLike, as_printed: bool = False, **sizes: Unpack[Sizes]
) -> str | Names:
    """Return which rate decides by table 1: ``1``, ``NPt``, ``Pt``, ``NPs`` or ``Ps``.

    A number gives a text, an array an array of texts. Corrected: eps(21), and the row
    gamma <= 1, whose third column begins with NPt up to eps(21) where that exceeds
    eps(2); ``as_printed`` leaves both out.
    """
    case = Case.of(**sizes, ordered=True)
    first, second, third, eleven, twenty_one = _ends(case, as_printed)
    log = _logs(epsilon)
    near, far = TARGET_PRIVATE, SOURCES_PRIVATE
    if case.gamma > 1:
        near, far = far, near
    late = twenty_one
    if case.gamma <= 1 and as_printed:
        late = -math.inf
    if case.gamma > case.gamma_star:
        late, third = math.inf, math.inf
    conditions = [log <= first, log <= second, log <= third]
    columns = [
        np.full(log.shape, NOTHING),
        np.where(log <= eleven, near, far),
        np.where(log <= late, TARGET, SOURCES_PRIVATE),
    ]
    return _said(np.select(conditions, columns, SOURCES))


def brute(*, epsilon: ArrayLike, **sizes: Unpack[Sizes]) -> str | Names:
    """Return the same as ``dominant``, by comparing the four rates of (4)."""
    case = Case.of(**sizes)
    return _said(_decides(case, _logs(epsilon))[0])


def log_risk(
    epsilon: ArrayLike, *, alpha: float = 1.0, **sizes: Unpack[Sizes]
) -> FloatArray:
    """Return the natural logarithm of the rate (4) without L_N, at most 0."""
    case = Case.of(**sizes)
    found = -case.beta * (1 + alpha) * _decides(case, _logs(epsilon))[1]
    return np.asarray(found + 0.0)  # 0, not -0


def switches(**sizes: Unpack[Sizes]) -> list[Switch]:
    """Return every epsilon at which the deciding rate of (4) changes, rising.

    Two rates can change places where their lines cross only: the rates are compared
    between any two of the crossings.
    """
    case = Case.of(**sizes)
    pairs = combinations([*case.lines(), Line(NOTHING, 0.0)], 2)
    ends = sorted(
        (b.level - a.level) / (a.slope - b.slope)
        for a, b in pairs
        if a.slope != b.slope
    )
    between = [ends[0] - 1, *((a + b) / 2 for a, b in pairwise(ends)), ends[-1] + 1]
    names = _decides(case, np.array(between))[0].tolist()
    found = zip(ends, pairwise(names), strict=True)
    return [Switch(exp(at), *pair) for at, pair in found if pair[0] != pair[1]]


def lines(**sizes: Unpack[Sizes]) -> tuple[Line, Line, Line, Line]:
    """Return log 1/r by each of the four rates of (4): NPt, Pt, NPs and Ps."""
    return Case.of(**sizes).lines()


def _decides(case: Case, log: FloatArray) -> tuple[Names, FloatArray]:
    """Return which rate decides and log 1/r, which is at least 0."""
    (target, its_noise), (source, their_noise) = case.lines()[:2], case.lines()[2:]
    mine, best = _lesser(target, its_noise, log)
    other, helped = _lesser(source, their_noise, log)
    name, level = np.where(best >= helped, mine, other), np.maximum(best, helped)
    return np.where(level > 0, name, NOTHING), np.maximum(level, 0.0)


def _lesser(one: Line, other: Line, log: FloatArray) -> tuple[Names, FloatArray]:
    """Return the rate that one server's records allow: the worse of its two."""
    a, b = one.at(log), other.at(log)
    return np.where(a <= b, one.name, other.name), np.minimum(a, b)


def _logs(epsilon: ArrayLike) -> FloatArray:
    given = validate.finite(epsilon=epsilon)
    if (given <= 0).any():
        raise UserError(f"epsilon is {given.min():g}; it must be above 0.")
    return np.asarray(np.log(given))


def _said(names: Names) -> str | Names:
    return names if names.ndim else str(names)
