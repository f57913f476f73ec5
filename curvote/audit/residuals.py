"""Residuals: outputs with the input taken out, uniform if the declared law holds.

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
from curvote.mechanisms.grid import GRID_ONE
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
def output_residuals(
    mechanism: Mechanism, x: FloatArray, out: NDArray[Any], rng: np.random.Generator
) -> FloatArray | None:
    """Return residuals (n, k) of outputs for n inputs, None for other laws.

    ``rng`` spreads the jumps of the law.
    """
    del mechanism, x, out, rng
    return None


def uniform_between(below: Any, upto: Any, rng: np.random.Generator) -> FloatArray:
    """Return a uniform number in each [``below``, ``upto``]."""
    low = np.asarray(below, dtype=np.float64)
    return np.asarray(low + rng.random(low.shape) * (upto - low))


def event_residual(
    hit: NDArray[np.bool_], share: Any, rng: np.random.Generator
) -> FloatArray:
    """Return the residual of an event of probability ``share``: below it if ``hit``."""
    return uniform_between(np.where(hit, 0.0, share), np.where(hit, share, 1.0), rng)


@output_residuals.register
def _scalar_residuals(
    mechanism: ScalarMechanism, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    parts = []
    for at in range(0, len(out), _CHUNK):
        values, outputs_part = x[at : at + _CHUNK], out[at : at + _CHUNK]
        below = mechanism.cdf(values, np.nextafter(outputs_part, -np.inf))
        parts.append(uniform_between(below, mechanism.cdf(values, outputs_part), rng))
    return np.concatenate(parts).reshape(len(out), -1)


@output_residuals.register
def _coordinate_residuals(
    mechanism: PerCoordinate, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    return _scalar_residuals(mechanism.scalar, x, out, rng)


@output_residuals.register
def _sampled_residuals(
    mechanism: Sampled, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    positions, _ = mechanism.scalar_outputs(out)
    residuals = _scalar_residuals(mechanism.scalar, x, positions, rng)
    return np.where(out == 0, rng.random(out.shape), residuals)


@output_residuals.register
def _gaussian_residuals(
    mechanism: Gaussian, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    del rng
    return np.asarray(special.ndtr((out - mechanism.mean(x)) / mechanism.sigma))


@output_residuals.register
def _corner_residuals(
    mechanism: DuchiVector, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    return event_residual(out > 0, (1 + mechanism.mean(x) / mechanism.largest) / 2, rng)


@output_residuals.register
def _box_residuals(
    mechanism: JointBox, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
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
def _direction_residuals(
    mechanism: PrivUnit, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return residuals of the height and of one tangent coordinate."""
    return cap_residuals(mechanism, mechanism.clip(x)[0], out * mechanism.m, 0, rng)


@output_residuals.register
def _one_of_residuals(
    mechanism: OneOf, x: FloatArray, out: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return residuals of directions, those of other classes turned back."""
    (own_class, u), (named, v) = map(
        mechanism.split_records, (mechanism.clip(x)[0], out)
    )
    turns = (named - own_class) % mechanism.n_classes
    return cap_residuals(mechanism, u, v * mechanism.m, turns, rng)


def cap_residuals(
    mechanism: PrivUnit, u: FloatArray, v: FloatArray, turns: Any, rng: Any
) -> FloatArray:
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


def _height_tail(height: FloatArray, d: int) -> FloatArray:
    """Return P(H >= height) for the height of a uniform direction of R^d."""
    rest = np.clip(1 - height**2, 0, 1)
    tail: FloatArray = special.betainc((d - 1) / 2, 0.5, rest) / 2
    return np.where(height >= 0, tail, 1 - tail)


@output_residuals.register
def _label_residuals(
    mechanism: LabelMechanism,
    x: FloatArray,
    out: NDArray[Any],
    rng: np.random.Generator,
) -> FloatArray | None:
    named = output_distribution(mechanism, np.arange(mechanism.n_classes))
    if named is None:
        if isinstance(mechanism, PackedMechanism):
            return _two_bit_residuals(mechanism, x, out, rng)
        return None
    (distinct, shares), codes = named, code_numbers(mechanism, out)
    place = np.minimum(np.searchsorted(distinct, codes), len(distinct) - 1)
    reached = np.hstack([np.zeros((len(shares), 1)), np.cumsum(shares, axis=1)])
    labels = x.astype(int)
    residuals = uniform_between(reached[labels, place], reached[labels, place + 1], rng)
    # What the channel does not name is as far from its law as can be.
    return np.where(distinct[place] == codes, residuals, 0.0)[:, None]


def _two_bit_residuals(
    mechanism: PackedMechanism,
    x: FloatArray,
    out: NDArray[Any],
    rng: np.random.Generator,
) -> FloatArray:
    """Return residuals of the bits of the label and of the next one."""
    reached = np.append(0.0, np.cumsum(pair.outcome_shares(mechanism)))
    outcomes = pair.pair_outcomes(mechanism, x, out).astype(int)
    return uniform_between(reached[outcomes], reached[outcomes + 1], rng)[:, None]


@output_residuals.register
def _one_hot_residuals(
    mechanism: Alibi, x: FloatArray, out: NDArray[Any], rng: np.random.Generator
) -> FloatArray:
    """Return residuals of the label's number, then of later labels."""
    below, upto = mechanism.cdf(x, out - 1), mechanism.cdf(x, out)
    residuals = uniform_between(below, upto, rng)
    after = np.arange(min(mechanism.n_classes, _NUMBERS))
    order = (x.astype(int)[:, None] + after) % mechanism.n_classes
    return np.take_along_axis(residuals, order, axis=1)


def output_distribution(
    mechanism: LabelMechanism, labels: NDArray[Any]
) -> tuple[FloatArray, FloatArray] | None:
    """Return all outputs, ascending, and P(output | label), (n, m).

    None where there are too many to list.
    """
    try:
        numbers = code_numbers(mechanism, mechanism.outputs())
    except UserError:
        return None
    order = np.argsort(numbers)
    return numbers[order], mechanism.probabilities(labels)[:, order]


def code_numbers(mechanism: LabelMechanism, outputs: NDArray[Any]) -> FloatArray:
    """Return codes, or rows of at most 50 bits, as one number each."""
    if not isinstance(mechanism, PackedMechanism):
        return np.asarray(outputs, dtype=np.float64)
    bits = np.unpackbits(outputs, axis=1, count=mechanism.n_classes)
    return np.asarray(bits @ 2.0 ** np.arange(mechanism.n_classes))
