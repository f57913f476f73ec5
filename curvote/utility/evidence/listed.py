"""Noise that has few outputs, listed: asking for each of them leaves nothing to chance.

A feature sent by k-RR on 101 levels takes 101 questions, two by Duchi's method four.
"""

from __future__ import annotations

import math

import numpy as np

from curvote.mechanisms.law import Law, Mixture
from curvote.validate import FloatArray

# What the masses may lack of one by rounding.
ROUNDING = 1e-9


def list_outputs(
    mixture: Mixture | None, most: int
) -> tuple[FloatArray, FloatArray] | None:
    """Return all outputs of discrete noise, (n, m, d), and their probabilities.

    None where they are more than ``most``, or not atoms alone. One output may stand
    there several times.
    """
    if mixture is None:
        return None
    laws = [law for term in mixture.terms for law in term]
    if any((law.masses.sum(axis=1) < 1 - ROUNDING).any() for law in laws):
        return None
    possible = [[_drop_impossible(law) for law in term] for term in mixture.terms]
    if sum(math.prod(law.masses.shape[1] for law in term) for term in possible) > most:
        return None
    crossed = [_cross_atoms(term) for term in possible]
    shares = [mass * mixture.weights[:, [i]] for i, (_, mass) in enumerate(crossed)]
    return np.concatenate([points for points, _ in crossed], axis=1), np.hstack(shares)


def _drop_impossible(law: Law) -> Law:
    """Return the law without the atoms that no record has."""
    some = (law.masses > 0).any(axis=0)
    return Law(law.points[:, some], law.masses[:, some])


def _cross_atoms(term: list[Law]) -> tuple[FloatArray, FloatArray]:
    """Return every choice of one atom from each law, and its probability."""
    sizes = [law.masses.shape[1] for law in term]
    chosen = np.indices(sizes).reshape(len(sizes), -1)
    pairs = list(zip(term, chosen, strict=True))
    points = np.stack([law.points[:, at] for law, at in pairs], axis=2)
    return points, np.prod([law.masses[:, at] for law, at in pairs], axis=0)
