"""The learner that takes the best of the others, by the likelihood of the codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from curvote.labels.codes import Codes
from curvote.labels.learners.base import Learner
from curvote.labels.learners.basis import Basis, graph
from curvote.labels.learners.choice import Tried, judged, likeliest, simplest
from curvote.labels.learners.knn import KNN, neighbourhoods
from curvote.labels.learners.likelihood import RIDGES, LikelihoodVotes, in_folds
from curvote.labels.learners.smoothing import Known, Mask, masks
from curvote.labels.learners.spectral import (
    SpectralVotes,
    columns,
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
# Of n K: maximum likelihood in folds takes ten times as long as all the rest.
_LOGISTIC = 1 << 16


class Auto(Learner):
    """Chooses among regressions on a graph's columns, neighbours and logistic models.

    The first two with and without sweeps, their settings by left-out votes; then all by
    the likelihood of the codes in folds. What cannot be told from the likeliest and is
    simpler is taken: no sweep before sweeps, the graph before neighbours before
    `LikelihoodVotes`. Neighbours are tried up to 8,192 records, maximum likelihood up
    to n K of 65,536; above n K of 4 million no sweep is.

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
        given = self.spectral
        spectral = graph(every, codes.n_classes) if given is None else given
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
        if len(X) * codes.n_classes <= _LOGISTIC:
            found.append(_logistic(basis, codes, known, held))
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
        if isinstance(made, SpectralVotes | LikelihoodVotes):
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


def _logistic(
    basis: Basis, codes: Codes, known: Known, held: Sequence[Mask]
) -> list[Judged]:
    """Judge maximum likelihood under each ridge, and return the likeliest.

    On as many columns as are best for least squares.
    """
    products = basis.columns.T @ sums(basis, codes)
    grid = columns(basis.width, len(codes))
    m = likeliest(tried_on(basis, products, known, grid)).params["m"]
    scaled = basis.first(m) * np.sqrt(len(codes))
    votes = in_folds(scaled, known.likely, held, RIDGES)
    found = [
        Judged(judged("likelihood", {"m": m, "ridge": ridge}, each, known.likely), each)
        for ridge, each in zip(RIDGES, votes, strict=True)
    ]
    return [max(found, key=lambda one: one.tried.likelihood)]


def _best(families: Sequence[Sequence[Judged]]) -> Judged:
    """Return the first family's choice, unless another's is told to be better."""
    chosen = [settled(family) for family in families]
    best = simplest([one.tried for one in chosen])
    return next(one for one in chosen if one.tried is best)


def _learner(tried: Tried, spectral: Spectral) -> Learner:
    if tried.name == "knn":
        return KNN(**tried.params)
    if tried.name == "likelihood":
        return LikelihoodVotes(**tried.params, spectral=spectral)
    return SpectralVotes(**tried.params, spectral=spectral)
