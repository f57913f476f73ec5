"""Residuals: outputs with the input taken out, uniform if the declared law holds.

The randomised probability integral transform: P(output < seen) plus a uniform part of
P(output = seen). Under the declared law residuals are independent and uniform whatever
the inputs are, so that one comparison serves all mechanisms and all inputs at once.
"""

import math
from functools import singledispatch
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray as Array
from curvote.checks.subject import Rng, Subject
from curvote.mechanisms.alibi import Alibi
from curvote.mechanisms.base import LabelMechanism, Mechanism, ScalarMechanism
from curvote.mechanisms.coordinates import PerCoordinate, Sampled
from curvote.mechanisms.duchi import DuchiVector
from curvote.mechanisms.exact import GRID_ONE, bit_at
from curvote.mechanisms.gaussian import Gaussian
from curvote.mechanisms.joint_box import JointBox
from curvote.mechanisms.labels import PackedMechanism
from curvote.mechanisms.privunit import OneOf, PrivUnit

_TOTAL = float(1 << 64)
# Clients at once: a channel of 101 outputs has a row for each.
_CHUNK = 1 << 13
# Numbers of a one-hot label that are looked at.
_NUMBERS = 4


@singledispatch
def output_residuals(
    mechanism: Mechanism, x: Array, out: NDArray[Any], rng: Rng
) -> Array | None:
    """Return residuals (n, k) of outputs for n inputs, None for other laws.

    ``rng`` spreads the jumps of the law.
    """
    del mechanism, x, out, rng
    return None


def uniform_between(below: Any, upto: Any, rng: Rng) -> Array:
    """Return a uniform number in each [``below``, ``upto``]."""
    low = np.asarray(below, dtype=np.float64)
    return np.asarray(low + rng.random(low.shape) * (upto - low))


def event_residual(hit: NDArray[np.bool_], share: Any, rng: Rng) -> Array:
    """Return the residual of an event of probability ``share``: below it if ``hit``."""
    return uniform_between(np.where(hit, 0.0, share), np.where(hit, share, 1.0), rng)


@output_residuals.register
def _scalar_residuals(
    mechanism: ScalarMechanism, x: Array, out: Array, rng: Rng
) -> Array:
    parts = []
    for at in range(0, len(out), _CHUNK):
        values, outputs_part = x[at : at + _CHUNK], out[at : at + _CHUNK]
        below = mechanism.cdf(values, np.nextafter(outputs_part, -np.inf))
        parts.append(uniform_between(below, mechanism.cdf(values, outputs_part), rng))
    return np.concatenate(parts).reshape(len(out), -1)


@output_residuals.register
def _coordinate_residuals(m: PerCoordinate, x: Array, out: Array, rng: Rng) -> Array:
    return _scalar_residuals(m.scalar, x, out, rng)


@output_residuals.register
def _sampled_residuals(mechanism: Sampled, x: Array, out: Array, rng: Rng) -> Array:
    positions, _ = mechanism.scalar_outputs(out)
    residuals = _scalar_residuals(mechanism.scalar, x, positions, rng)
    return np.where(out == 0, rng.random(out.shape), residuals)


@output_residuals.register
def _gaussian_residuals(mechanism: Gaussian, x: Array, out: Array, rng: Rng) -> Array:
    del rng
    return np.asarray(special.ndtr((out - mechanism.mean(x)) / mechanism.sigma))


@output_residuals.register
def _corner_residuals(mechanism: DuchiVector, x: Array, out: Array, rng: Rng) -> Array:
    return event_residual(out > 0, (1 + mechanism.mean(x) / mechanism.largest) / 2, rng)


@output_residuals.register
def _box_residuals(mechanism: JointBox, x: Array, out: Array, rng: Rng) -> Array:
    """Return residuals of whether and where the output is in the cube."""
    corner = np.rint(mechanism.clip(x)[0] * GRID_ONE) - mechanism.side // 2
    lowest = np.clip(corner, -GRID_ONE, GRID_ONE + 1 - mechanism.side)
    away = out * GRID_ONE - lowest
    inside = ((away >= 0) & (away < mechanism.side)).all(axis=1)
    place = uniform_between(away, away + 1, rng) / mechanism.side
    rest = np.where(inside[:, None], place, rng.random(out.shape))
    side = event_residual(inside, mechanism.threshold / _TOTAL, rng)
    return np.column_stack([side, rest])


@output_residuals.register
def _direction_residuals(mechanism: PrivUnit, x: Array, out: Array, rng: Rng) -> Array:
    """Return residuals of the height and of one tangent coordinate."""
    return cap_residuals(mechanism, mechanism.clip(x)[0], out * mechanism.m, 0, rng)


@output_residuals.register
def _one_of_residuals(mechanism: OneOf, x: Array, out: Array, rng: Rng) -> Array:
    """Return residuals of directions, those of other classes turned back."""
    own_class, u = mechanism.split_records(mechanism.clip(x)[0])
    named, v = mechanism.split_records(out)
    turns = (named - own_class) % mechanism.n_classes
    return cap_residuals(mechanism, u, v * mechanism.m, turns, rng)


def cap_residuals(
    mechanism: PrivUnit, u: Array, v: Array, turns: Any, rng: Any
) -> Array:
    """Return residuals of v on the sphere, ``turns`` classes after u."""
    d, p, share = mechanism.length, mechanism.p, mechanism.cap.share
    height = np.clip(np.einsum("ij,ij->i", u, v), -1, 1)
    above = _height_tail(height, d)
    inside = (height >= mechanism.cap.gamma) & (turns == 0)
    rest = (above + turns - share) / (mechanism.spheres - share)
    side = np.where(inside, p * above / share, p + (1 - p) * rest)
    # The reflection that takes u to the first axis takes the tangent to the others.
    axis = np.eye(d)[0]
    mirror = u - axis
    square = np.einsum("ij,ij->i", mirror, mirror)[:, None]
    along = np.einsum("ij,ij->i", mirror, v)[:, None]
    turned = v - 2 * mirror * along / np.where(square == 0, 1, square)
    tangent = turned[:, 1:] / np.linalg.norm(turned[:, 1:], axis=1, keepdims=True)
    if d == 2:
        return np.column_stack([side, event_residual(tangent[:, 0] > 0, 0.5, rng)])
    return np.column_stack([side, _height_tail(tangent[:, 0], d - 1)])


def _height_tail(height: Array, d: int) -> Array:
    """Return P(H >= height) for the height of a uniform direction of R^d."""
    rest = np.clip(1 - height**2, 0, 1)
    tail: Array = special.betainc((d - 1) / 2, 0.5, rest) / 2
    return np.where(height >= 0, tail, 1 - tail)


@output_residuals.register
def _label_residuals(
    mechanism: LabelMechanism, x: Array, out: NDArray[Any], rng: Rng
) -> Array | None:
    named = output_distribution(mechanism, np.arange(mechanism.n_classes))
    if named is None:
        if not isinstance(mechanism, PackedMechanism):
            return None
        # Too many outputs: the bits of the label and of the next one.
        law = np.append(0.0, np.cumsum(outcome_shares(mechanism)))
        at = pair_outcomes(mechanism, x, out).astype(int)
        return uniform_between(law[at], law[at + 1], rng)[:, None]
    (distinct, shares), codes = named, code_numbers(mechanism, out)
    place = np.minimum(np.searchsorted(distinct, codes), len(distinct) - 1)
    reached = np.hstack([np.zeros((len(shares), 1)), np.cumsum(shares, axis=1)])
    labels = x.astype(int)
    residuals = uniform_between(reached[labels, place], reached[labels, place + 1], rng)
    # What the channel does not name is as far from its law as can be.
    return np.where(distinct[place] == codes, residuals, 0.0)[:, None]


def pair_outcomes(mechanism: PackedMechanism, x: Array, out: NDArray[Any]) -> Array:
    """Return which of label and next label each output supports, 0 to 3."""
    labels = x.astype(np.int64)
    own_bits, other_bits = (
        bit_at(out, (labels + step) % mechanism.n_classes) for step in (0, 1)
    )
    return np.asarray(2.0 * own_bits + other_bits)


def outcome_shares(mechanism: PackedMechanism) -> Array:
    """Return the declared probability of each of the four outcomes."""
    own_share, other_share = mechanism.pair()
    none, both_share = 1 - mechanism.p - other_share, mechanism.p - own_share
    return np.array([none, other_share, own_share, both_share], dtype=np.float64)


@output_residuals.register
def _one_hot_residuals(
    mechanism: Alibi, x: Array, out: NDArray[Any], rng: Rng
) -> Array:
    """Return residuals of the label's number, then of later labels."""
    below, upto = mechanism.cdf(x, out - 1), mechanism.cdf(x, out)
    residuals = uniform_between(below, upto, rng)
    after = np.arange(min(mechanism.n_classes, _NUMBERS))
    order = (x.astype(int)[:, None] + after) % mechanism.n_classes
    return np.take_along_axis(residuals, order, axis=1)


def output_distribution(
    mechanism: LabelMechanism, labels: NDArray[Any]
) -> tuple[Array, Array] | None:
    """Return all outputs, ascending, and P(output | label), (n, m).

    None where there are too many to list.
    """
    try:
        numbers = code_numbers(mechanism, mechanism.outputs())
    except UserError:
        return None
    order = np.argsort(numbers)
    return numbers[order], mechanism.probabilities(labels)[:, order]


def code_numbers(mechanism: LabelMechanism, outputs: NDArray[Any]) -> Array:
    """Return codes, or rows of at most 50 bits, as one number each."""
    if not isinstance(mechanism, PackedMechanism):
        return np.asarray(outputs, dtype=np.float64)
    bits = np.unpackbits(outputs, axis=1, count=mechanism.n_classes)
    return np.asarray(bits @ 2.0 ** np.arange(mechanism.n_classes))


SAMPLE_NUMBERS = 12


def noise_uniforms(noise: NDArray[np.int64], sigma: Array, rng: Rng) -> Array:
    """Return the uniform values of some noise numbers and of their length."""
    spread = np.sqrt(sigma**2 + 1 / 12)
    z = (noise + rng.random(noise.shape) - 0.5) / spread
    some = rng.permutation(z.shape[1])[:SAMPLE_NUMBERS]
    length = special.gammainc(z.shape[1] / 2, (z**2).sum(axis=1) / 2)
    return np.column_stack([special.ndtr(z[:, some]), length])


BIN = 0.01
# Inputs that code may treat in a way of their own, each tried many times; what lies
# beyond the domain is clipped, or normalised.
_TENTHS = np.concatenate([np.arange(0, 101) / 100, np.arange(1, 8) / 8])
_SMALL = np.array([1 / 3, 2.0**-10, 2.0**-20, 2.0**-21, 1e-3, 1e-6, 1e-12, 5e-324])
_BEYOND = np.array([1 + 1e-9, 1.25, 1.5, 2.0, 3.0, 7.0, 100.0, 1e6])
SPECIAL = np.unique(np.outer([-1, 1], np.concatenate([_TENTHS, _SMALL, _BEYOND])))


def test_values(shape: tuple[int, ...], rng: Rng) -> Array:
    """Return numbers all over [-1, 1], a third of them ``SPECIAL`` ones."""
    spread = rng.uniform(-1, 1, shape)
    chosen = SPECIAL[rng.integers(len(SPECIAL), size=shape)]
    return np.where(rng.random(shape) < 1 / 3, chosen, spread)


def value_bins(places: Array) -> NDArray[np.int64]:
    """Return each value's bin; a special value has its own."""
    at = np.minimum(np.searchsorted(SPECIAL, places), len(SPECIAL) - 1)
    spread = len(SPECIAL) + np.floor((places + 1) / BIN)
    return np.where(SPECIAL[at] == places, at, spread).astype(np.int64)


def check_interior(places: Array, residuals: Array, alpha: float) -> str | None:
    """Compare draws with the declared law at special inputs and in bins.

    ``places`` (n, j) are inputs from everywhere, ``residuals`` (n, k) what was drawn
    for them; wrong with probability ``alpha`` at most. Where number and input belong
    together, also the residual's distance from the middle: too little noise is near it.
    """
    columns_match = places.shape[1] == residuals.shape[1]
    column_alpha = alpha / (2 * places.shape[1] * residuals.shape[1])
    pairs = product(enumerate(places.T), enumerate(residuals.T))
    for (i, column), (j, residual) in pairs:
        which = value_bins(column)
        why = uneven_bin(which, column, residual, column_alpha)
        if not why and (i == j or not columns_match):
            why = uneven_bin(which, column, np.abs(2 * residual - 1), column_alpha)
        if why:
            return f"{why} (input {i}, number {j})"
    return None


def uneven_bin(
    which: NDArray[np.int64], places: Array, residual: Array, alpha: float
) -> str | None:
    """Return the bin whose residuals are not uniform, if any (DKW)."""
    order = np.lexsort((residual, which))
    ordered, u = which[order], residual[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sizes = np.diff(np.append(starts, len(u)))
    rank = np.arange(len(u)) - np.repeat(starts, sizes)
    size = np.repeat(sizes, sizes)
    above, below = (rank + 1) / size - u, u - rank / size
    gap = np.maximum.reduceat(np.maximum(above, below), starts)
    allowed = np.sqrt(math.log(2 * len(starts) / alpha) / (2 * sizes))
    excess = np.where(np.isfinite(gap), gap - allowed, 1.0)
    worst = int(np.argmax(excess))
    if excess[worst] <= 0:
        return None
    near = places[order][starts[worst]]
    return f"for inputs near {near:.4g} the law is off by {gap[worst]:.2g}"


def uniformity_gap(residuals: Array, alpha: float) -> str | None:
    """Return how far residuals (n, k) are from uniform, beyond chance.

    Or their distances from the middle, which halved noise leaves too small.
    """
    columns, gap = [*residuals.T, *np.abs(2 * residuals - 1).T], -math.inf
    n, rank = len(residuals), np.arange(len(residuals))
    allowed = math.sqrt(math.log(2 / (alpha / len(columns))) / (2 * n))
    for column in columns:
        u = np.sort(column)
        off = np.maximum((rank + 1) / n - u, u - rank / n).max(initial=0)
        gap = max(gap, float(off - allowed))
    return f"the law is off by {gap:.2g} more than chance allows" if gap > 0 else None


SIZES = (1, 5, 16, 17)
# Half the noise moves residuals by 1/4: 400 show that, at an error rate of 1e-8 and 3.7
# standard deviations above what is allowed. Only mechanisms, of which messages are
# made, are drawn so often that they get more.
FEW_ROWS, ROWS = 400, 1500
FEW = 50_000


def check_batches(
    subject: Subject, samples: int, entropy: Entropy, rng: Rng, alpha: float
) -> str | None:
    """Draw ``ROWS`` clients in calls of each size, and compare with the law.

    Wrong with probability ``alpha`` at most.
    """
    rows = ROWS if samples >= FEW else FEW_ROWS
    for size in SIZES:
        clients = subject.many(rows, rng)
        calls = [slice(start, start + size) for start in range(0, rows, size)]
        parts = [subject.send(subject.part(clients, call), entropy) for call in calls]
        outputs = subject.together(parts)
        call_residuals = subject.residuals(clients, outputs, rng)
        why = None
        if not np.asarray(subject.possible(outputs)).all():
            why = "an output was drawn that the declared law gives for no input"
        elif call_residuals is not None:
            why = uniformity_gap(call_residuals, alpha / len(SIZES))
        if why:
            return f"in calls for {size} clients {why}"
    return None


# Standard deviations: sums of bounded products go beyond once in 10^9 whole tables
# (Bernstein), for as few as ``LEAST`` pairs and millions of distances.
MOST = 8.5
LEAST = 1000
MOST_COLUMNS = 8
# Beyond a block of 65,536 clients.
MOST_ROWS = 70_000


def check_lags(residuals: Array) -> str | None:
    """Correlate residuals (n, k) of one call at every lag.

    Both residuals and their distances from the middle: noise that is used again with
    another sign is the same noise.
    """
    n, k = residuals.shape
    columns = residuals[:, : min(k, MOST_COLUMNS)] - 0.5
    series = np.hstack([columns * np.sqrt(12), (np.abs(columns) - 0.25) * np.sqrt(48)])
    width = fft.next_fast_len(2 * n, real=True)
    turned = fft.rfft(series, width, axis=0)
    pairs = n - np.arange(n)
    for i in range(series.shape[1]):
        products = fft.irfft(turned[:, [i]].conj() * turned, width, axis=0)[:n]
        z = np.abs(products) / np.sqrt(np.maximum(pairs, 1))[:, None]
        z[0, i] = 0  # each with itself
        z[pairs < LEAST] = 0
        if z.max() > MOST:
            lag, j = np.unravel_index(int(np.argmax(z)), z.shape)
            where = "the numbers of one client" if lag == 0 else f"clients {lag} apart"
            half = min(k, MOST_COLUMNS)
            return (
                f"{where} share noise: numbers {i % half} and {int(j) % half} are"
                f" correlated by {z.max():.1f} standard deviations"
            )
    return None
