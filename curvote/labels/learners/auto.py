"""The learner that takes the best of the others, by the likelihood of the codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from curvote.labels.codes import Codes
from curvote.labels.learners.base import Learner
from curvote.labels.learners.basis import Basis, graph
from curvote.labels.learners.choice import Tried, likeliest, simplest
from curvote.labels.learners.knn import KNN, neighbourhoods
from curvote.labels.learners.smoothing import Known, masks
from curvote.labels.learners.spectral import (
    SpectralVotes,
    looser,
    shrunk,
    sums,
    tried_on,
)
from curvote.labels.learners.sweeping import NUMBERS, Judged, Option, settled, swept
from curvote.labels.spectral import Spectral
from curvote.validate import FloatArray

# Neighbours of every record are looked for where there are no more records.
_NEAR = 1 << 13


class Auto(Learner):
    """Chooses among regressions on a graph's columns and means of neighbours.

    Each with and without sweeps, its settings by left-out votes; then all by the
    likelihood of the codes in folds. What cannot be told from the likeliest and is
    simpler is taken: the graph before neighbours, no sweep before sweeps. Neighbours
    are tried up to 8,192 records. Where n K is above 4 million no sweep is tried.

    ``spectral``: a fitted `Spectral`, whose graph is then taken as it is.

    Attributes:
        learner_: the learner that was chosen, fitted.
    """

    def __init__(self, spectral: Spectral | None = None) -> None:
        self.spectral = spectral

    def fit(
        self,
        X: FloatArray,
        codes: Codes,
        rng: np.random.Generator,
        unlabelled: FloatArray | None = None,
    ) -> Self:
        """Learn from records (n, d) and their codes (n,)."""
        every = X if unlabelled is None else np.vstack([X, unlabelled])
        spectral = self.spectral or graph(every, codes.n_classes)
        if len(X) * codes.n_classes > NUMBERS:
            return self._take(SpectralVotes(spectral=spectral).fit(X, codes, rng))
        basis, known = Basis.of(spectral, X), Known.of(codes)
        held = masks(len(X), rng)
        coarse, options = _graphs(basis, codes, known)
        found = [swept(options, known, held)]
        if len(X) <= _NEAR:
            more, options = neighbourhoods(X, known, codes.epsilon)
            coarse = [*coarse, *more]
            found.append(swept(options, known, held))
        best = _best(found)
        learner = _learner(best.tried, spectral).fit(X, codes, rng)
        self._take(learner)
        self.tried_ = [one.row() for one in coarse]
        self.tried_ += [one.tried.row() for family in found for one in family]
        self._forget(best.left_out)
        return self

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the votes of the learner that was chosen."""
        return self.learner_.votes(X)

    def fixed(self) -> Learner:
        """Return the learner that was chosen, unfitted, its settings stated."""
        made = self.learner_.fixed()
        if isinstance(made, SpectralVotes):
            made.spectral = self.spectral
        return made

    def _take(self, learner: Learner) -> Self:
        self.learner_ = learner
        self.chosen_, self.tried_ = dict(learner.chosen_), learner.tried_
        self._forget(learner.without_own)
        return self


def _graphs(
    basis: Basis, codes: Codes, known: Known
) -> tuple[list[Tried], list[Option]]:
    """Judge how much to shrink; return the best, and what shrinks less, as options."""
    products = basis.columns.T @ sums(basis, codes)
    tried = tried_on(basis, products, known, shrunk(basis.width))
    return tried, looser(basis, likeliest(tried).params["steps"])


def _best(families: Sequence[Sequence[Judged]]) -> Judged:
    """Return the first family's choice, unless another's is told to be better."""
    chosen = [settled(family) for family in families]
    best = simplest([one.tried for one in chosen])
    return next(one for one in chosen if one.tried is best)


def _learner(tried: Tried, spectral: Spectral) -> Learner:
    if tried.name == "knn":
        return KNN(**tried.params)
    return SpectralVotes(**tried.params, spectral=spectral)
