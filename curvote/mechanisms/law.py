"""Laws of mechanisms in exact numbers, as a certificate states them.

Whoever reads them computes the loss anew: no mechanism is asked for it here but for
Gaussian noise, whose loss is the root of an equation.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import singledispatch
from typing import Any, Final

from curvote.base.errors import UserError
from curvote.mechanisms.alibi import ONE_HOT_STEPS, Alibi
from curvote.mechanisms.coordinates import PerCoordinate, Sampled
from curvote.mechanisms.duchi import Duchi, DuchiVector
from curvote.mechanisms.exact import GRID_ONE, WORDS, DiscreteLaplace
from curvote.mechanisms.frequency_oracles import (
    Hadamard,
    SubsetSelection,
    Unary,
    UnaryOptimised,
    UnarySymmetric,
)
from curvote.mechanisms.gaussian import Gaussian, GaussianNoise
from curvote.mechanisms.joint_box import JointBox
from curvote.mechanisms.laplace import Exponential, Laplace
from curvote.mechanisms.piecewise import Hybrid, WindowMechanism
from curvote.mechanisms.privunit import PrivUnit
from curvote.mechanisms.randomized_response import (
    KRR,
    BinaryRR,
    RROnBins,
    RRWithPrior,
)

# A law as JSON: its kind, how often it is drawn, the least epsilon, its parameters.
StatedLaw = dict[str, Any]
# Decimal places of a least epsilon, which is rounded up: far below any loss that 2^64
# words leave to be made up.
_PLACES: Final = Decimal("1e-40")
# What root finding may have left out of a Gaussian least epsilon, with room to spare.
_ROOT_ERROR: Final = Fraction(1, 10**9)


def exact_text(number: Fraction | float | int) -> str:
    """Return a number as a fraction of whole numbers: "3/4", "2"."""
    return str(Fraction(number))


def least_epsilon(odds: Fraction) -> Fraction:
    """Return ln(odds), odds >= 1, rounded up to 40 places."""
    context = Context(prec=120, rounding=ROUND_CEILING)
    parts = Decimal(odds.numerator), Decimal(odds.denominator)
    near = context.ln(context.divide(*parts))
    return Fraction(near.quantize(_PLACES, context=context) if near else near)


@singledispatch
def state_laws(mechanism: Any) -> list[StatedLaw]:
    """Return the laws from whose draws an output is made; they lose the sum.

    UserError: a plug-in's mechanism, whose law nobody here knows.
    """
    name = type(mechanism).__name__
    raise UserError(
        f"{name} is no mechanism of curvote: no certificate can state its law."
    )


def _law(kind: str, least: Fraction, **parameters: Any) -> list[StatedLaw]:
    about = {"kind": kind, "times": 1, "least": exact_text(least)}
    return [about | parameters]


def _two_sided(kind: str, threshold: int, near: int, far: int) -> list[StatedLaw]:
    """Return the law that is one of ``near`` for ``threshold`` of 2^64 words."""
    keep = Fraction(threshold, WORDS)
    least = least_epsilon(keep * far / ((1 - keep) * near))
    sides = {"near": str(near), "far": str(far)}
    return _law(kind, least, keep=exact_text(keep), **sides)


def _channel(rows: list[list[int]], of: int) -> list[StatedLaw]:
    odds = [Fraction(max(c), min(c)) for c in zip(*rows, strict=True) if any(c)]
    texts = [[str(n) for n in row] for row in rows]
    return _law("channel", least_epsilon(max(odds)), of=str(of), rows=texts)


def _laplace(noise: DiscreteLaplace, distance: int) -> list[StatedLaw]:
    rate = Fraction(noise.s, 1 << noise.bits)
    far = {"rate": exact_text(rate), "distance": str(distance)}
    return _law("discrete_laplace", rate * distance, **far)


@state_laws.register(BinaryRR)
@state_laws.register(Duchi)  # at the ends of its domain; between them it is a mixture
def _of_sign(mechanism: BinaryRR | Duchi) -> list[StatedLaw]:
    return _two_sided("binary", mechanism.threshold, 1, 1)


@state_laws.register
def _of_krr(mechanism: KRR) -> list[StatedLaw]:
    return _two_sided("k_rr", mechanism.threshold, 1, mechanism.n_classes - 1)


@state_laws.register
def _of_bins(mechanism: RROnBins) -> list[StatedLaw]:
    return state_laws(mechanism.label) if mechanism.label else _channel([[1]], 1)


@state_laws.register
def _of_prior(mechanism: RRWithPrior) -> list[StatedLaw]:
    rows = mechanism.channel()
    of = math.lcm(*(share.denominator for row in rows for share in row))
    return _channel([[int(share * of) for share in row] for row in rows], of)


@state_laws.register
def _of_subsets(mechanism: SubsetSelection) -> list[StatedLaw]:
    sides = mechanism.omega, mechanism.n_classes - mechanism.omega
    return _two_sided("subset", mechanism.threshold, *sides)


@state_laws.register
def _of_columns(mechanism: Hadamard) -> list[StatedLaw]:
    sides = mechanism.supporting, mechanism.not_supporting
    return _two_sided("hadamard", mechanism.threshold, *sides)


@state_laws.register(Unary)
@state_laws.register(UnaryOptimised)
@state_laws.register(UnarySymmetric)
def _of_bits(mechanism: Unary | UnaryOptimised | UnarySymmetric) -> list[StatedLaw]:
    p, q = mechanism.p, mechanism.q
    odds = p * (1 - q) / (q * (1 - p))
    return _law("unary", least_epsilon(odds), p=exact_text(p), q=exact_text(q))


@state_laws.register
def _of_laplace(mechanism: Laplace) -> list[StatedLaw]:
    return _laplace(mechanism.noise, 2 * GRID_ONE)


@state_laws.register
def _of_alibi(mechanism: Alibi) -> list[StatedLaw]:
    return _laplace(mechanism.noise, 2 * ONE_HOT_STEPS)


@state_laws.register
def _of_grid(mechanism: Exponential) -> list[StatedLaw]:
    return _channel(mechanism.counts.tolist(), WORDS)


@state_laws.register
def _of_window(mechanism: WindowMechanism) -> list[StatedLaw]:
    points = mechanism.window
    sides = points.width, points.size - points.width
    return _two_sided("window", points.threshold, *sides)


@state_laws.register(DuchiVector)
@state_laws.register(JointBox)
def _of_region(mechanism: DuchiVector | JointBox) -> list[StatedLaw]:
    sides = mechanism.inside, mechanism.outside
    return _two_sided("window", mechanism.threshold, *sides)


@state_laws.register
def _of_hybrid(mechanism: Hybrid) -> list[StatedLaw]:
    laws = state_laws(mechanism.duchi)
    if not mechanism.coin:
        return laws
    laws = state_laws(mechanism.piecewise) + laws
    return _law("chosen", max(Fraction(law["least"]) for law in laws), laws=laws)


@state_laws.register
def _of_direction(mechanism: PrivUnit) -> list[StatedLaw]:
    accept = Fraction(mechanism.threshold_out, mechanism.threshold_in)
    margin = Fraction(mechanism.margin)
    numbers = {"epsilon": mechanism.epsilon, "share": mechanism.share}
    numbers |= {"accept": accept, "margin": margin}
    texts = {name: exact_text(number) for name, number in numbers.items()}
    size = {"d": mechanism.length, "spheres": mechanism.spheres}
    return _law("privunit", least_epsilon(1 / accept) + margin, **size, **texts)


@state_laws.register
def _of_noise(mechanism: GaussianNoise) -> list[StatedLaw]:
    near = Fraction(mechanism.worst_log_ratio()) + _ROOT_ERROR
    least = min(near, Fraction(mechanism.epsilon))
    numbers = {"distance": mechanism.sensitivity, "rate": mechanism.law.rate}
    numbers |= {"delta": mechanism.delta}
    texts = {name: exact_text(number) for name, number in numbers.items()}
    return _law("gaussian", least, **texts)


@state_laws.register
def _of_gaussian(mechanism: Gaussian) -> list[StatedLaw]:
    return state_laws(mechanism.noise)


@state_laws.register
def _of_coordinates(mechanism: PerCoordinate) -> list[StatedLaw]:
    laws = state_laws(mechanism.scalar)
    return [law | {"times": law["times"] * mechanism.d} for law in laws]


@state_laws.register
def _of_some(mechanism: Sampled) -> list[StatedLaw]:
    return state_laws(mechanism.part)
