"""Laws of mechanisms in exact numbers, as a certificate states them.

Whoever reads them computes the loss anew: no mechanism is asked for it here but for
Gaussian noise, whose loss is the root of an equation.
"""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, Final

from curvote.base.errors import UserError
from curvote.mechanisms import duchi, laplace, piecewise
from curvote.mechanisms import frequency_oracles as oracles
from curvote.mechanisms import randomized_response as response
from curvote.mechanisms.alibi import ONE_HOT_STEPS, Alibi
from curvote.mechanisms.coordinates import PerCoordinate, Sampled
from curvote.mechanisms.exact import GRID_ONE, WORDS, DiscreteLaplace
from curvote.mechanisms.gaussian import Gaussian, GaussianNoise
from curvote.mechanisms.joint_box import JointBox
from curvote.mechanisms.privunit import PrivUnit

# A law as JSON: its kind, how often it is drawn, the least epsilon, its parameters.
StatedLaw = dict[str, Any]
# A least epsilon is rounded up to these places, far below what 2^64 words leave.
_PLACES: Final = Decimal("1e-40")
# What root finding may have left out of a Gaussian least epsilon, with room to spare.
_ROOT_ERROR: Final = Fraction(1, 10**9)


def exact_text(number: Fraction | float) -> str:
    """Return a number as a fraction of whole numbers: "3/4", "2"."""
    return str(Fraction(number))


def state_laws(mechanism: Any) -> list[StatedLaw]:
    """Return the laws from whose draws an output is made; they lose the sum.

    UserError: a plug-in's mechanism, whose law nobody here knows.
    """
    for kind in type(mechanism).__mro__:
        if kind in _LAWS:
            return _LAWS[kind](mechanism)
    name = type(mechanism).__name__
    raise UserError(f"{name} is a plug-in's: no certificate can state its law.")


def _law(kind: str, least: Fraction, **numbers: Any) -> list[StatedLaw]:
    texts = {
        name: exact_text(number) if isinstance(number, Fraction | float) else number
        for name, number in numbers.items()
    }
    return [{"kind": kind, "times": 1, "least": exact_text(least), **texts}]


def _least_epsilon(odds: Fraction) -> Fraction:
    context = Context(prec=120, rounding=ROUND_CEILING)
    parts = Decimal(odds.numerator), Decimal(odds.denominator)
    log = context.ln(context.divide(*parts))
    return Fraction(log.quantize(_PLACES, context=context))


def _two_sided(kind: str, threshold: int, near: int, far: int) -> list[StatedLaw]:
    """Return the law that is one of ``near`` for ``threshold`` of 2^64 words."""
    keep = Fraction(threshold, WORDS)
    least = _least_epsilon(keep * far / ((1 - keep) * near))
    return _law(kind, least, keep=keep, near=str(near), far=str(far))


def _region(mechanism: Any) -> list[StatedLaw]:
    sides = mechanism.inside, mechanism.outside
    return _two_sided("window", mechanism.threshold, *sides)


def _window(window: piecewise.Window) -> list[StatedLaw]:
    sides = window.width, window.size - window.width
    return _two_sided("window", window.threshold, *sides)


def _unary(mechanism: Any) -> list[StatedLaw]:
    p, q = mechanism.p, mechanism.q
    return _law("unary", _least_epsilon(p * (1 - q) / (q * (1 - p))), p=p, q=q)


def _channel(rows: list[list[int]], of: int) -> list[StatedLaw]:
    odds = [Fraction(max(c), min(c)) for c in zip(*rows, strict=True) if any(c)]
    texts = [[str(n) for n in row] for row in rows]
    return _law("channel", _least_epsilon(max(odds)), of=str(of), rows=texts)


def _prior(mechanism: response.RRWithPrior) -> list[StatedLaw]:
    rows = mechanism.channel()
    of = math.lcm(*(share.denominator for row in rows for share in row))
    return _channel([[int(share * of) for share in row] for row in rows], of)


def _laplace(noise: DiscreteLaplace, distance: int) -> list[StatedLaw]:
    rate = Fraction(noise.s, 1 << noise.bits)
    return _law("discrete_laplace", rate * distance, rate=rate, distance=distance)


def _hybrid(mechanism: piecewise.Hybrid) -> list[StatedLaw]:
    parts = [mechanism.piecewise, mechanism.duchi][not mechanism.coin :]
    laws = [law for part in parts for law in state_laws(part)]
    return _law("chosen", max(Fraction(law["least"]) for law in laws), laws=laws)


def _direction(mechanism: PrivUnit) -> list[StatedLaw]:
    accept = Fraction(mechanism.threshold_out, mechanism.threshold_in)
    margin = Fraction(mechanism.margin)
    return _law(
        "privunit",
        _least_epsilon(1 / accept) + margin,
        d=mechanism.length,
        spheres=mechanism.spheres,
        epsilon=Fraction(mechanism.epsilon),
        share=mechanism.share,
        accept=accept,
        margin=margin,
    )


def _noise(noise: GaussianNoise) -> list[StatedLaw]:
    near = Fraction(noise.worst_log_ratio()) + _ROOT_ERROR
    numbers = {"distance": noise.sensitivity, "rate": noise.law.rate}
    least = min(near, Fraction(noise.epsilon))
    return _law("gaussian", least, **numbers, delta=noise.delta)


def _repeated(laws: list[StatedLaw], times: int) -> list[StatedLaw]:
    return [law | {"times": law["times"] * times} for law in laws]


_LAWS: Final[dict[type, Callable[[Any], list[StatedLaw]]]] = {
    response.BinaryRR: lambda m: _two_sided("binary", m.threshold, 1, 1),
    response.KRR: lambda m: _two_sided("k_rr", m.threshold, 1, m.n_classes - 1),
    response.RROnBins: lambda m: state_laws(m.label) if m.label else _channel([[1]], 1),
    response.RRWithPrior: _prior,
    # At the ends of its domain; between them it is a mixture of both.
    duchi.Duchi: lambda m: _two_sided("binary", m.threshold, 1, 1),
    duchi.DuchiVector: _region,
    JointBox: _region,
    piecewise.WindowMechanism: lambda m: _window(m.window),
    piecewise.Hybrid: _hybrid,
    oracles.SubsetSelection: lambda m: _two_sided(
        "subset", m.threshold, m.omega, m.n_classes - m.omega
    ),
    oracles.Hadamard: lambda m: _two_sided(
        "hadamard", m.threshold, m.supporting, m.not_supporting
    ),
    oracles.Unary: _unary,
    oracles.UnaryOptimised: _unary,
    oracles.UnarySymmetric: _unary,
    laplace.Laplace: lambda m: _laplace(m.noise, 2 * GRID_ONE),
    laplace.Exponential: lambda m: _channel(m.counts.tolist(), WORDS),
    Alibi: lambda m: _laplace(m.noise, 2 * ONE_HOT_STEPS),
    PrivUnit: _direction,
    GaussianNoise: _noise,
    Gaussian: lambda m: _noise(m.noise),
    PerCoordinate: lambda m: _repeated(state_laws(m.scalar), m.d),
    Sampled: lambda m: state_laws(m.part),
}
