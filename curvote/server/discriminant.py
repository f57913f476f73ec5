"""Linear discriminant analysis of several classes from their noised moments.

With pi_k the share of class k and u = (s, z)/|(s, z)|, the label moment H = E[l u'] of
corners l_k of a simplex tells

    pi_k E[u | k] = (K - 1)/K H' l_k + E[u]/K,

so its first number is the class's share, the others its mean (times E[u_0], the length
that u takes from z). The second moment gives centre and scatter of all, of which the
scatter of the class means is taken away to have that within classes (Fisher 1936; Rao
1948).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.representation.simplex import corners
from curvote.shrinkage import Known, kept

Array = NDArray[np.float64]

# Class means that noise has moved scatter more, so no direction is left with less of
# the scatter within classes than this part of all.
WITHIN = 0.5
# Class means are taken to differ by at least this part of the noise that hides them.
LEAST = 0.1
# No class is taken to be rarer than this part of an equal share.
RAREST = 0.2


def discriminant(known: Known, s: float) -> tuple[Array, Array]:
    """Return coef (K, d) and intercept (K,) of z: the largest score names the class.

    ``known`` holds H (K - 1, p), the variance of its numbers and the second moment;
    ``s`` is the constant beside z.
    """
    second, n_classes = known.second, len(known.label) + 1
    part = (n_classes - 1) / n_classes
    # In units of E[u_0]: pi_k times (1, z/s), less the mean of all over K.
    told = part * corners(n_classes) @ known.label / np.sqrt(second.corner)
    noise = part**2 * known.noise / second.corner
    shares = _shares(told[:, 0], noise)
    apart = told[:, 1:] - told[:, :1] * second.centre
    own = noise * (1 + float(second.centre @ second.centre) / len(second.centre))
    white, hidden = _whitening(second.around / second.corner, own)
    means = _believed(apart @ white, hidden) / shares[:, None]
    rule = means @ _inverse_within(means, shares)
    coef = rule @ white.T
    level = np.log(shares) - (rule * means).sum(axis=1) / 2
    return coef / s, level - coef @ second.centre


def _shares(observed: Array, noise: float) -> Array:
    """Return the classes' shares (K,): their distance from equal ones is shrunk."""
    count = len(observed)
    uneven = kept(observed, (count - 1) * noise) * observed
    shares = np.maximum(1 + count * uneven, RAREST)
    return np.asarray(shares / shares.sum())


def _whitening(around: Array, noise: float) -> tuple[Array, Array]:
    """Return W (d, d), x W is white, and the noise of each of its numbers (d,)."""
    values, vectors = np.linalg.eigh(around)
    return vectors / np.sqrt(values), noise / values


def _believed(observed: Array, hidden: Array) -> Array:
    """Return observed (K, d) as expected under a normal prior of one common variance.

    ``hidden`` (d,) is the variance of the noise (empirical Bayes).
    """
    excess = float(np.mean(observed**2 - hidden))
    signal = max(excess, LEAST * float(hidden.mean()))
    return np.asarray(observed * (signal / (signal + hidden)))


def _inverse_within(means: Array, shares: Array) -> Array:
    """Return the inverse of the scatter within classes, where that of all is 1."""
    between, vectors = np.linalg.eigh((means.T * shares) @ means)
    return np.asarray((vectors / np.maximum(1 - between, WITHIN)) @ vectors.T)
