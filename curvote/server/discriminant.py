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

from curvote.representation.simplex import simplex_codes
from curvote.shrinkage import NoisyMoments, shrink_factor

Array = NDArray[np.float64]

# Class means that noise has moved scatter more, so no direction is left with less of
# the scatter within classes than this part of all.
LEAST_WITHIN = 0.5
# Class means are taken to differ by at least this part of the noise that hides them.
LEAST_SIGNAL = 0.1
# No class is taken to be rarer than this part of an equal share.
SMALLEST_CLASS_SHARE = 0.2


def discriminant_classifier(moments: NoisyMoments, s: float) -> tuple[Array, Array]:
    """Return coef (K, d) and intercept (K,) of the discriminant of z.

    ``moments`` holds H (K - 1, p), the variance of its numbers and the second moment;
    ``s`` is the constant beside z.
    """
    second, n_classes = moments.second, len(moments.label) + 1
    part = (n_classes - 1) / n_classes
    # In units of E[u_0]: pi_k times (1, z/s), less the mean of all over K.
    class_moments = (
        part * simplex_codes(n_classes) @ moments.label / np.sqrt(second.corner)
    )
    noise = part**2 * moments.noise / second.corner
    shares = _class_shares(class_moments[:, 0], noise)
    offsets = class_moments[:, 1:] - class_moments[:, :1] * second.centre
    variance = noise * (1 + float(second.centre @ second.centre) / len(second.centre))
    whitener, hidden = _whitening_matrix(second.around / second.corner, variance)
    means = _posterior_means(offsets @ whitener, hidden) / shares[:, None]
    rule = means @ _inverse_within(means, shares)
    coef = rule @ whitener.T
    level = np.log(shares) - (rule * means).sum(axis=1) / 2
    return coef / s, level - coef @ second.centre


def _class_shares(observed: Array, noise: float) -> Array:
    """Return the classes' shares (K,), shrunk towards equal ones."""
    count = len(observed)
    uneven = shrink_factor(observed, (count - 1) * noise) * observed
    shares = np.maximum(1 + count * uneven, SMALLEST_CLASS_SHARE)
    return np.asarray(shares / shares.sum())


def _whitening_matrix(around: Array, noise: float) -> tuple[Array, Array]:
    """Return W (d, d) that whitens x, and the noise of each coordinate."""
    values, vectors = np.linalg.eigh(around)
    return vectors / np.sqrt(values), noise / values


def _posterior_means(observed: Array, hidden: Array) -> Array:
    """Return observed (K, d) as posterior means of a normal prior.

    ``hidden`` (d,) is the variance of the noise (empirical Bayes).
    """
    excess = float(np.mean(observed**2 - hidden))
    signal = max(excess, LEAST_SIGNAL * float(hidden.mean()))
    return np.asarray(observed * (signal / (signal + hidden)))


def _inverse_within(means: Array, shares: Array) -> Array:
    """Return the inverse of the scatter within classes."""
    between, vectors = np.linalg.eigh((means.T * shares) @ means)
    return np.asarray((vectors / np.maximum(1 - between, LEAST_WITHIN)) @ vectors.T)
