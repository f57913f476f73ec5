"""Half-whitened coordinates of volunteers' records, and a rule from reports in them.

Noise on a report is alike in all directions, so narrow ones drown. Whitened, no
direction is narrow; but what tells classes apart most often lies where records spread,
and would lose. So records are whitened by half, with Q diag(l)^(-1/4) Q' of volunteers'
covariance. Which is so here, the label moment says: each of two priors on the slopes,
one that expects them anywhere and one that expects them where records spread, counts by
its evidence, the likelihood of the moment with all that is not known integrated out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.curves.direction import Directions, Whitening
from curvote.learning.directions import (
    NARROWEST,
    Line,
    NoisyMoments,
    ReportMean,
    discriminant_classifier,
    estimate_moments,
    shrink_factor,
)
from curvote.learning.volunteers import pool_second_moments

Array = NDArray[np.float64]

# All numbers here were chosen on even seeds of `benchmarks.court.volunteers`, where
# many are equally good (docs/choosing.md): powers from .15 to .3, any k from 4 to 12.
POWER = 0.25
# In direction j of variance l_j a signal of l_j^k is expected, by these k.
EXPONENTS = (1.0, 12.0)
# The parts of the largest possible signal that slopes and constant may have, each
# equally likely.
SHARES, BALANCES = np.geomspace(0.01, 1, 10), np.geomspace(0.0001, 1, 10)
# By how much a single direction may differ from that, each equally likely.
LOCAL_SCALES = np.array([0.1, 1.0, 10.0])


def half_whitening(z: Array) -> Whitening:
    """Return the public coordinates, of mean square 1, that records z (n, d) make.

    The centre is shrunk towards the public one, by its own noise.
    """
    n, d = z.shape
    centre = z.mean(axis=0)
    values, vectors = np.linalg.eigh((z - centre).T @ (z - centre) / n)
    values = np.maximum(values, NARROWEST * (float(values.mean()) or 1.0))
    centre = shrink_factor(centre @ vectors / np.sqrt(values), d / n) * centre
    scale = 1 / np.sqrt(np.mean(values ** (1 - 2 * POWER)))
    matrix = scale * (vectors * values**-POWER) @ vectors.T
    return Whitening(np.asarray(matrix), centre)


def whitened_classifier(
    mean: ReportMean, directions: Directions, epsilon: float, z: Array
) -> Line:
    """Return coef and intercept of z from reports in half-whitened coordinates.

    ``directions`` are those of the reports, ``z`` (n, d) the volunteers' numbers. Of
    more than two classes it is the discriminant by the volunteers' second moment.
    """
    whitening = half_whitening(z)
    units = directions.units(whitening.apply(z))
    reported = estimate_moments(mean, directions, epsilon)
    second = pool_second_moments(mean, directions, epsilon, units)
    moments = replace(reported, second=second)
    if len(moments.label) > 1:
        coef, constant = discriminant_classifier(moments, directions.intercept)
    else:
        w = weigh_priors(moments)
        coef, constant = w[1:], w[:1] * directions.intercept
    slopes = (whitening.matrix.T @ coef.T).T
    constant = constant - slopes @ whitening.centre
    return slopes, constant if len(moments.label) > 1 else float(constant[0])


def weigh_priors(moments: NoisyMoments) -> Array:
    """Return the posterior mean of w (p,), each prior weighed by its evidence."""
    second, (moment, variance) = moments.second, moments.slopes
    values, vectors = np.linalg.eigh(second.around)
    shape = (values / values.max()) ** np.array(EXPONENTS)[:, None]
    shape *= values.sum() / shape.sum(axis=1, keepdims=True)
    signal = np.multiply.outer(SHARES, shape)[..., None] * LOCAL_SCALES
    evidence, means = posterior_mean(vectors.T @ moment, variance, signal)
    total = evidence.sum(axis=-1)
    weights = np.exp(total - total.max())
    slopes = np.tensordot(weights / weights.sum(), means, 2) / values @ vectors.T
    label = moments.label[0, :1]
    _, constant = posterior_mean(label, moments.noise, second.corner * BALANCES[None])
    return np.append(constant / second.corner - second.centre @ slopes, slopes)


def posterior_mean(observed: Array, noise: float, signal: Array) -> tuple[Array, Array]:
    """Return log evidence and posterior mean (..., d) of what is ``observed`` (d,).

    Its noise has the variance ``noise``, it itself one of ``signal`` (..., d, G), each
    equally likely. A constant of the evidence is left out.
    """
    total = signal + noise
    log = -(np.log(total) + observed[:, None] ** 2 / total) / 2
    top = log.max(axis=-1, keepdims=True)
    weights = np.exp(log - top)
    evidence = top[..., 0] + np.log(weights.mean(axis=-1))
    weights /= weights.sum(axis=-1, keepdims=True)
    return evidence, observed * (weights * signal / total).sum(axis=-1)
