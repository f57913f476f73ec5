"""Rules that choose a system or an arm from public facts: N, d and epsilon.

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
from curvote.mechanisms.one_of import one_of_variance
from curvote.mechanisms.privunit import privunit_variance
from curvote.protocols.direct.arms import MAX_WIDTH

# Above, even the strongest signal that u can carry drowns in the noise.
MAX_NOISE = 0.06
# A second moment is worth its part of the report below the first, whitening below the
# second: an open arm of `direct` compares v.
ARM_NOISE_STEPS = (0.003, 0.0015)
# `auto` compares p v, since a second moment has more numbers to hide where p is larger.
# Two rounds gain nothing above its second but where the public centre is far off.
AUTO_NOISE_STEPS = (0.015, 0.0045)
# Of more classes both are worth it together, where v (K - 1) p^2 is below this.
TWO_ROUNDS_LIMIT = 0.2
# 1-of-K pays where its noise is less by this factor: its second moment is noisier.
ONE_OF_FACTOR = 1.5
_TOO_WIDE = (
    f"a second moment of more than {MAX_WIDTH} numbers would be too long to send"
)


@dataclass(frozen=True)
class Choice:
    """Protocol, its arm where it has several, the reason, and the noise v."""

    protocol: str
    arm: str | None
    noise: float
    reason: str

    @property
    def method(self) -> str:
        """Name in tables: that of the arm, or of the protocol."""
        return self.arm or self.protocol


def choose_arm(
    n: int,
    d: int,
    epsilon: float,
    liars: float = 0.0,
    n_classes: int = 2,
    *,
    steps: tuple[float, float] = ARM_NOISE_STEPS,
) -> Choice:
    """Return the arm of `direct` for ``n`` clients of d numbers at ``epsilon``.

    ``liars``, in [0, 1/2), is the share of clients who may lie; there are ``n_classes``
    K >= 2. Of two classes, `joint` and `two` are taken where v is at most ``steps``.
    """
    n, p = validate.at_least(1, n=n), validate.at_least(1, d=d) + 1
    label_size = (validate.at_least(2, n_classes=n_classes) - 1) * p
    v = privunit_variance(label_size, epsilon) / n
    if d > MAX_WIDTH:
        arm, why = "mean", _TOO_WIDE
    elif n_classes == 2:
        arm, why = _arm_of_two_classes(v, *steps)
    elif (factor := noise_factor(n_classes, p, epsilon)) > ONE_OF_FACTOR:
        arm, why = "one_of", f"1 of {n_classes} with a direction has {factor:.2g} times"
        why += " less noise"
    else:
        arm, why = _arm_of_many_classes(v * label_size * p)
    if validate.minority(liars=liars) and arm != "mean":
        arm, why = (
            "mean",
            f"small, but {_format_liars(liars)}; these reports are the shortest",
        )
    size = f"N epsilon^2 = {n * epsilon**2:,.6g}, noise {v:.2g}"
    return Choice("direct", arm, v, f"{size}: {why}")


def _format_liars(liars: float) -> str:
    return f"{100 * liars:g} % may lie"


def _arm_of_two_classes(v: float, joint: float, two: float) -> tuple[str, str]:
    if v > joint:
        why = "all of the report goes into the label moment"
        return "mean", f"above {joint:.2g}, {why}"
    if v > two:
        return "joint", f"at most {joint:.2g}, the second moment pays"
    return "two", f"at most {two:.2g}, a first round for centre and whitening pays"


def _arm_of_many_classes(energy: float) -> tuple[str, str]:
    size = f"{energy:.2g} with all classes and numbers counted"
    if energy > TWO_ROUNDS_LIMIT:
        why = "all of the report goes into the label moment"
        return "mean", f"{size}, above {TWO_ROUNDS_LIMIT:g}, {why}"
    why = "a first round for centre and whitening pays"
    return "two", f"{size}, at most {TWO_ROUNDS_LIMIT:g}, {why}"


def noise_factor(n_classes: int, p: int, epsilon: float) -> float:
    """Return by which factor 1-of-K has less noise than the simplex code.

    Both of pi_k E[u | k], a coordinate: (K - 1)^2/K^2 v, and that of `one_of`.
    """
    part = (n_classes - 1) / n_classes
    simplex = part**2 * privunit_variance((n_classes - 1) * p, epsilon)
    return simplex / one_of_variance(n_classes, p, epsilon)


def choose_protocol(
    n: int, d: int, epsilon: float, liars: float = 0.0, n_classes: int = 2
) -> Choice:
    """Return the choice of protocol ``auto``: an arm of `direct`, or another.

    Where some may lie it is `votes` instead of `direct`: a liar's bit counts no more
    than an honest one, a report of `PrivUnit` is 1/m times as long as an honest
    client's mean (measured: benchmarks/bench_liars.py).
    """
    p = validate.at_least(1, d=d) + 1
    steps = AUTO_NOISE_STEPS[0] / p, AUTO_NOISE_STEPS[1] / p
    best = choose_arm(n, d, epsilon, liars, n_classes, steps=steps)
    size, _, _ = best.reason.partition(":")
    if best.noise <= MAX_NOISE and liars:
        why = (
            f"small, but {_format_liars(liars)}, and with one bit each they turn least"
        )
        return Choice("votes", None, best.noise, f"{size}: {why}")
    if best.noise <= MAX_NOISE:
        return best
    why = f"above {MAX_NOISE:g}, expect nothing better than the majority"
    return Choice("majority", None, best.noise, f"{size}: {why}")
