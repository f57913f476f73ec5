"""Outputs with the input taken out: uniform on [0, 1] if the declared law holds.

The randomised probability integral transform: P(output < seen) plus a uniform part of
P(output = seen). Under the declared law residuals are independent and uniform whatever
the inputs are, so that one comparison serves all mechanisms and all inputs at once.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from curvote.audit import pair
from curvote.errors import UserError
from curvote.mechanisms.alibi import Alibi
from curvote.mechanisms.base import LabelMechanism, Mechanism, ScalarMechanism
from curvote.mechanisms.coordinates import PerCoordinate
from curvote.mechanisms.duchi_vector import DuchiVector
from curvote.mechanisms.gaussian import Gaussian
from curvote.mechanisms.grid import ONE
from curvote.mechanisms.joint_box import JointBox
from curvote.mechanisms.labels import PackedMechanism
from curvote.mechanisms.one_of import OneOf
from curvote.mechanisms.privunit import PrivUnit
from curvote.mechanisms.sampled import Sampled
from curvote.validate import FloatArray

_TOTAL = float(1 << 64)
# Clients at once: a channel of 101 outputs has a row for each.
_CHUNK = 1 << 13
# Numbers of a one-hot label that are looked at.
_NUMBERS = 4


@singledispatch
def of(
    mechanism: Mechanism, x: FloatArray, out: NDArray[Any], rng: np.random.Generator
) -> FloatArray | None:
    """Return residuals (n, k) of outputs for n inputs; None: the law has no such form.

    ``rng`` spreads the jumps of the law.
    """
    del mechanism, x, out, rng
    return None


def between(below: Any, upto: Any, rng: np.random.Generator) -> FloatArray:
    """Return a uniform number in each [``below``, ``upto``]."""
    low = np.asarray(below, dtype=np.float64)
    return np.asarray(low + rng.random(low.shape) * (upto - low))


def coin(hit: NDArray[np.bool_], share: Any, rng: np.random.Generator) -> FloatArray:
    """Return the residual of an event of probability ``share``: below it if ``hit``."""
    return between(np.where(hit, 0.0, share), np.where(hit, share, 1.0), rng)


@of.register
def _scalar(
    mechanism: ScalarMechanism, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    found = []
    for at in range(0, len(out), _CHUNK):
        given, seen = x[at : at + _CHUNK], out[at : at + _CHUNK]
        below = mechanism.cdf(given, np.nextafter(seen, -np.inf))
        found.append(between(below, mechanism.cdf(given, seen), rng))
    return np.concatenate(found).reshape(len(out), -1)


@of.register
def _each(
    mechanism: PerCoordinate, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    return _scalar(mechanism.scalar, x, out, rng)


@of.register
def _sampled(
    mechanism: Sampled, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    given, _ = mechanism.reported(out)
    found = _scalar(mechanism.scalar, x, given, rng)
    return np.where(out == 0, rng.random(out.shape), found)


@of.register
def _gaussian(
    mechanism: Gaussian, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    del rng
    return np.asarray(special.ndtr((out - mechanism.mean(x)) / mechanism.sigma))


@of.register
def _corner(
    mechanism: DuchiVector, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    return coin(out > 0, (1 + mechanism.mean(x) / mechanism.largest) / 2, rng)


@of.register
def _box(
    mechanism: JointBox, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Whether it is in the cube; and where, in each coordinate, if it is."""
    corner = np.rint(mechanism.clip(x)[0] * ONE) - mechanism.side // 2
    lowest = np.clip(corner, -ONE, ONE + 1 - mechanism.side)
    away = out * ONE - lowest
    inside = ((away >= 0) & (away < mechanism.side)).all(axis=1)
    place = between(away, away + 1, rng) / mechanism.side
    rest = np.where(inside[:, None], place, rng.random(out.shape))
    side = coin(inside, mechanism.threshold / _TOTAL, rng)
    return np.column_stack([side, rest])


@of.register
def _direction(
    mechanism: PrivUnit, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """The height above the input's equator, and one coordinate of the tangent."""
    return in_cap(mechanism, mechanism.clip(x)[0], out * mechanism.m, 0, rng)


@of.register
def _one_of(
    mechanism: OneOf, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """The same; those of another class follow those of the input's own."""
    (own, u), (named, v) = map(mechanism.parted, (mechanism.clip(x)[0], out))
    turns = (named - own) % mechanism.n_classes
    return in_cap(mechanism, u, v * mechanism.m, turns, rng)


def in_cap(
    mechanism: PrivUnit, u: FloatArray, v: FloatArray, turns: Any, rng: Any
) -> FloatArray:
    """Return residuals of v on the sphere that lies ``turns`` after that of u."""
    d, p, share = mechanism.length, mechanism.p, mechanism.cap.share
    height = np.clip(np.einsum("ij,ij->i", u, v), -1, 1)
    above = _above(height, d)
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
        return np.column_stack([side, coin(tangent[:, 0] > 0, 0.5, rng)])
    return np.column_stack([side, _above(tangent[:, 0], d - 1)])


def _above(height: FloatArray, d: int) -> FloatArray:
    """Return P(H >= height) for the height of a uniform direction of R^d."""
    rest = np.clip(1 - height**2, 0, 1)
    tail: FloatArray = special.betainc((d - 1) / 2, 0.5, rest) / 2
    return np.where(height >= 0, tail, 1 - tail)


@of.register
def _label(
    mechanism: LabelMechanism,
    x: FloatArray,
    out: NDArray[Any],
    rng: np.random.Generator,
) -> FloatArray | None:
    named = outputs(mechanism, np.arange(mechanism.n_classes))
    if named is None:
        if isinstance(mechanism, PackedMechanism):
            return _two_bits(mechanism, x, out, rng)
        return None
    (known, shares), seen = named, as_numbers(mechanism, out)
    place = np.minimum(np.searchsorted(known, seen), len(known) - 1)
    reached = np.hstack([np.zeros((len(shares), 1)), np.cumsum(shares, axis=1)])
    labels = x.astype(int)
    found = between(reached[labels, place], reached[labels, place + 1], rng)
    # What the channel does not name is as far from its law as can be.
    return np.where(known[place] == seen, found, 0.0)[:, None]


def _two_bits(
    mechanism: PackedMechanism,
    x: FloatArray,
    out: NDArray[Any],
    rng: np.random.Generator,
) -> FloatArray:
    """Of the bits of the label and of the next one, where there are many."""
    reached = np.append(0.0, np.cumsum(pair.shares(mechanism)))
    seen = pair.cells(mechanism, x, out).astype(int)
    return between(reached[seen], reached[seen + 1], rng)[:, None]


@of.register
def _one_hot(
    mechanism: Alibi, x: FloatArray, out: NDArray[Any], rng: np.random.Generator
) -> FloatArray:
    """Of the label's own number first, then of those of the labels after it."""
    below, upto = mechanism.cdf(x, out - 1), mechanism.cdf(x, out)
    found = between(below, upto, rng)
    after = np.arange(min(mechanism.n_classes, _NUMBERS))
    order = (x.astype(int)[:, None] + after) % mechanism.n_classes
    return np.take_along_axis(found, order, axis=1)


def outputs(
    mechanism: LabelMechanism, labels: NDArray[Any]
) -> tuple[FloatArray, FloatArray] | None:
    """Return all outputs as increasing numbers [m], and P(output | label), (n, m).

    None where there are too many to list.
    """
    try:
        known = as_numbers(mechanism, mechanism.outputs())
    except UserError:
        return None
    order = np.argsort(known)
    return known[order], mechanism.probabilities(labels)[:, order]


def as_numbers(mechanism: LabelMechanism, outputs: NDArray[Any]) -> FloatArray:
    """Return codes, or rows of at most 50 bits, as one number each."""
    if not isinstance(mechanism, PackedMechanism):
        return np.asarray(outputs, dtype=np.float64)
    bits = np.unpackbits(outputs, axis=1, count=mechanism.n_classes)
    return np.asarray(bits @ 2.0 ** np.arange(mechanism.n_classes))
