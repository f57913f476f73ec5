"""Densities of laws at points that were drawn, for ratios of one law to another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curvote.mechanisms.law import Law, Mixture
from curvote.validate import FloatArray

# A density is the mass of this part of a feature's width, around the point.
CELL = 2e-6
# A smaller mass at a point is rounding.
LEAST_ATOM = 1e-12


def atomic(mixture: Mixture, seen: FloatArray) -> NDArray[np.bool_]:
    """Say where a coordinate of ``seen`` (n, m, s) is an atom of some term's law."""
    found = np.zeros(seen.shape, dtype=bool)
    laws = {(i, id(law)): law for term in mixture.terms for i, law in enumerate(term)}
    for (place, _), law in laws.items():
        found[:, :, place] |= _mass(law, seen[:, :, place]) > LEAST_ATOM
    return found


def density(
    mixture: Mixture, seen: FloatArray, atoms: NDArray[np.bool_], widths: FloatArray
) -> FloatArray:
    """Return the density at ``seen`` (n, m, s), (n, m): masses where ``atoms`` says so.

    All laws of a ratio need the same ``atoms``. ``widths`` (s,) scale the small cell
    whose mass stands for a density; it is wrong only for points that close to where a
    density jumps.
    """
    total = np.zeros(seen.shape[:2])
    known: dict[tuple[int, int], FloatArray] = {}
    for weight, term in zip(mixture.weights.T, mixture.terms, strict=True):
        share = np.tile(weight[:, None], seen.shape[1])
        for i, law in enumerate(term):
            if (i, id(law)) not in known:
                near = seen[:, :, i], atoms[:, :, i], CELL * widths[i] / 2
                known[i, id(law)] = _one(law, *near)
            share *= known[i, id(law)]
        total += share
    return total


def _one(law: Law, at: FloatArray, atoms: NDArray[np.bool_], half: float) -> FloatArray:
    smooth = (law.upto(at + half) - law.upto(at - half)) / (2 * half)
    return np.where(atoms, _mass(law, at), smooth) if atoms.any() else smooth


def _mass(law: Law, at: FloatArray) -> FloatArray:
    return law.upto(at) - law.below(at)
