"""Densities of laws at points that were drawn, for ratios of one law to another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.mechanisms.law import Law, Mixture
from curvote.validate import FloatArray

# A density is the mass of this part of a feature's width, around the point.
CELL_WIDTH = 2e-6
# A smaller mass at a point is rounding.
LEAST_ATOM = 1e-12


def atom_mask(mixture: Mixture, points: FloatArray) -> NDArray[np.bool_]:
    """Return the mask of coordinates (n, m, s) that are an atom of some law."""
    mask = np.zeros(points.shape, dtype=bool)
    laws = {(i, id(law)): law for term in mixture.terms for i, law in enumerate(term)}
    for (place, _), law in laws.items():
        mask[:, :, place] |= _point_mass(law, points[:, :, place]) > LEAST_ATOM
    return mask


def mixture_density(
    mixture: Mixture, points: FloatArray, atoms: NDArray[np.bool_], widths: FloatArray
) -> FloatArray:
    """Return the density at ``points`` (n, m, s), (n, m): masses at ``atoms``.

    All laws of a ratio need the same ``atoms``. ``widths`` (s,) scale the small cell
    whose mass stands for a density; it is wrong only for points that close to where a
    density jumps.
    """
    total = np.zeros(points.shape[:2])
    cache: dict[tuple[int, int], FloatArray] = {}
    for weight, term in zip(mixture.weights.T, mixture.terms, strict=True):
        share = np.tile(weight[:, None], points.shape[1])
        for i, law in enumerate(term):
            if (i, id(law)) not in cache:
                near = points[:, :, i], atoms[:, :, i], CELL_WIDTH * widths[i] / 2
                cache[i, id(law)] = _law_density(law, *near)
            share *= cache[i, id(law)]
        total += share
    return total


def _law_density(
    law: Law, at: FloatArray, atoms: NDArray[np.bool_], half: float
) -> FloatArray:
    """Return one law's density at points, (n, m)."""
    smooth = (law.cdf(at + half) - law.cdf(at - half)) / (2 * half)
    return np.where(atoms, _point_mass(law, at), smooth) if atoms.any() else smooth


def _point_mass(law: Law, at: FloatArray) -> FloatArray:
    """Return one law's mass at points, (n, m)."""
    return law.cdf(at) - law.below(at)
