"""Which protocol, from public facts only: N clients, d numbers each, epsilon.

The rule looks at the noise of the label moment E[y u] that N reports leave,

    v = (1/m^2 - 1) / (p N),   p = d + 1,

the variance of each of its coordinates, where 1/m is the length of a `PrivUnit` report.
v N epsilon^2 lies between 5.4 and 6.4 for every d from 3 to 50 while epsilon is 2 at
most, so the rule asks in the end how large N epsilon^2 is. Of K > 2 classes the label
moment has (K - 1) p numbers in the place of p, and what counts is v (K - 1) p^2.
"""

from __future__ import annotations

from dataclasses import dataclass

from curvote import validate
from curvote.mechanisms.one_of import noise
from curvote.mechanisms.privunit import mean_variance
from curvote.protocols.direct.arms import WIDEST

# Above, even the strongest signal that u can carry drowns in the noise.
HOPELESS = 0.06
# A second moment is worth its part of the report below the first, whitening below the
# second: an open arm of `direct` compares v.
OPEN = (0.003, 0.0015)
# `auto` compares p v, since a second moment has more numbers to hide where p is larger.
# Two rounds gain nothing above its second but where the public centre is far off.
SPARING = (0.015, 0.0045)
# Of more classes both are worth it together, where v (K - 1) p^2 is below this.
TWO_OF_MANY = 0.2
# 1-of-K pays where its noise is less by this factor: its second moment is noisier.
ONE_OF = 1.5
_WIDE = f"a second moment of more than {WIDEST} numbers would be too long to send"


@dataclass(frozen=True)
class Choice:
    """A protocol, its arm where it has several, and why; ``noise`` is v."""

    protocol: str
    arm: str | None
    noise: float
    reason: str

    @property
    def method(self) -> str:
        """What stands in tables: the arm, or the protocol."""
        return self.arm or self.protocol


def arm_of(
    n: int,
    d: int,
    epsilon: float,
    liars: float = 0.0,
    n_classes: int = 2,
    *,
    steps: tuple[float, float] = OPEN,
) -> Choice:
    """Return the arm of `direct` for ``n`` clients, d numbers and ``epsilon`` each.

    ``liars``, in [0, 1/2), is the share of clients who may lie; there are ``n_classes``
    K >= 2. Of two classes, `joint` and `two` are taken where v is at most ``steps``.
    """
    n, p = validate.at_least(1, n=n), validate.at_least(1, d=d) + 1
    of_label = (validate.at_least(2, n_classes=n_classes) - 1) * p
    v = mean_variance(of_label, epsilon) / n
    if d > WIDEST:
        arm, why = "mean", _WIDE
    elif n_classes == 2:
        arm, why = _arm(v, *steps)
    elif (less := times_less(n_classes, p, epsilon)) > ONE_OF:
        arm, why = "one_of", f"1 of {n_classes} with a direction has {less:.2g} times"
        why += " less noise"
    else:
        arm, why = _arm_of_many(v * of_label * p)
    if validate.minority(liars=liars) and arm != "mean":
        arm, why = "mean", f"small, but {_few(liars)}; these reports are the shortest"
    size = f"N epsilon^2 = {n * epsilon**2:,.6g}, noise {v:.2g}"
    return Choice("direct", arm, v, f"{size}: {why}")


def _few(liars: float) -> str:
    return f"{100 * liars:g} % may lie"


def _arm(v: float, joint: float, two: float) -> tuple[str, str]:
    if v > joint:
        why = "all of the report goes into the label moment"
        return "mean", f"above {joint:.2g}, {why}"
    if v > two:
        return "joint", f"at most {joint:.2g}, the second moment pays"
    return "two", f"at most {two:.2g}, a first round for centre and whitening pays"


def _arm_of_many(energy: float) -> tuple[str, str]:
    size = f"{energy:.2g} with all classes and numbers counted"
    if energy > TWO_OF_MANY:
        why = "all of the report goes into the label moment"
        return "mean", f"{size}, above {TWO_OF_MANY:g}, {why}"
    why = "a first round for centre and whitening pays"
    return "two", f"{size}, at most {TWO_OF_MANY:g}, {why}"


def times_less(n_classes: int, p: int, epsilon: float) -> float:
    """Return by which factor 1-of-K's noise of a class's mean is below the simplex's.

    Both of pi_k E[u | k], a coordinate: (K - 1)^2/K^2 v, and that of `one_of`.
    """
    part = (n_classes - 1) / n_classes
    simplex = part**2 * mean_variance((n_classes - 1) * p, epsilon)
    return simplex / noise(n_classes, p, epsilon)


def choose(
    n: int, d: int, epsilon: float, liars: float = 0.0, n_classes: int = 2
) -> Choice:
    """Return what protocol ``auto`` takes: an arm of `direct`, or `majority`.

    Where some may lie it is `votes` instead of `direct`: a liar's bit counts no more
    than an honest one, a report of `PrivUnit` is 1/m times as long as an honest
    client's mean (measured: benchmarks/bench_liars.py).
    """
    p = validate.at_least(1, d=d) + 1
    steps = SPARING[0] / p, SPARING[1] / p
    best = arm_of(n, d, epsilon, liars, n_classes, steps=steps)
    size, _, _ = best.reason.partition(":")
    if best.noise <= HOPELESS and liars:
        why = f"small, but {_few(liars)}, and with one bit each they turn least"
        return Choice("votes", None, best.noise, f"{size}: {why}")
    if best.noise <= HOPELESS:
        return best
    why = f"above {HOPELESS:g}, expect nothing better than the majority"
    return Choice("majority", None, best.noise, f"{size}: {why}")
