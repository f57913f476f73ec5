"""Regression of the codes on the eigenvectors of the features' graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.labels.codes import Codes
from curvote.labels.learners.base import Learner, LeftOut
from curvote.labels.learners.basis import (
    Basis,
    Regression,
    graph,
    leverages,
    regression,
)
from curvote.labels.learners.choice import Tried, judged, judged_rows, likeliest
from curvote.labels.learners.smoothing import Known, stages
from curvote.labels.learners.sweeping import Option, after_sweeps
from curvote.labels.spectral import Spectral
from curvote.validate import FloatArray

Setting = tuple[int, float]

_STEPS = 2.0 ** np.arange(-1, 7)
_COLUMNS = np.rint(2 ** (np.arange(2, 40) / 2)).astype(int)


class SpectralVotes(Learner):
    """Regression of the decoded codes on columns of a `Spectral`.

    ``m`` are the first columns; ``steps`` >= 0 shrinks each by eigenvalue^steps, 0 is
    least squares. With m stated, steps is 0 unless stated; with neither, the likelihood
    of the codes chooses among numbers of columns and, with all columns, steps.
    ``sweeps`` times the codes are replaced by their posteriors under the votes.
    ``anchors`` None: 2,000, or a third of the records if these are fewer than 6,000.
    ``spectral``: a fitted `Spectral`, whose graph is then taken as it is.

    Codes are read in blocks; sweeps hold (n, K) numbers.
    """

    def __init__(
        self,
        m: int | None = None,
        anchors: int | None = None,
        neighbours: int = 5,
        *,
        steps: float | None = None,
        sweeps: int = 0,
        spectral: Spectral | None = None,
    ) -> None:
        self.m = m
        self.anchors = anchors
        self.neighbours = neighbours
        self.steps = steps
        self.sweeps = sweeps
        self.spectral = spectral

    def fit(
        self,
        X: FloatArray,
        codes: Codes,
        rng: np.random.Generator,
        unlabelled: FloatArray | None = None,
    ) -> Self:
        """Learn; more anchors, columns or neighbours than there can be: UserError."""
        validate.at_least(0, sweeps=self.sweeps)
        self.spectral_ = self._graph(X, codes.n_classes, unlabelled)
        basis = Basis.of(self.spectral_, X)
        rows = judged_rows(len(X), max(basis.width, codes.n_classes), rng)
        products = basis.columns.T @ sums(basis, codes)
        m, steps = self._tuned(basis.on(rows), products, codes[rows])
        self.chosen_ = {"m": m, "steps": steps, "sweeps": self.sweeps}
        kept = basis.kept(m, steps)
        if self.sweeps:
            self._sweep(regression(basis, kept), codes, rng)
        else:
            self.at_anchors_ = basis.columns @ (kept[:, None] * products)
            part = basis.on(rows)
            self._forget(partial(_alone, part, kept, products, codes[rows], rows))
        return self

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the votes of the records' anchors, weighted."""
        return np.asarray(self.spectral_.ties(X) @ self.at_anchors_)

    def fixed(self) -> Self:
        """Return an unfitted learner with stated settings, on the given graph."""
        made = cast("Self", super().fixed())
        made.spectral = self.spectral
        return made

    def _graph(
        self, X: FloatArray, n_classes: int, unlabelled: FloatArray | None
    ) -> Spectral:
        if self.spectral is not None:
            return self.spectral
        every = X if unlabelled is None else np.vstack([X, unlabelled])
        return graph(
            every,
            n_classes,
            m=None if self.steps else self.m,
            anchors=self.anchors,
            neighbours=self.neighbours,
        )

    def _settings(self, width: int, n: int) -> list[Setting]:
        """Return what is to be tried: columns, and steps."""
        if self.m is not None or self.steps is not None:
            return [(min(self.m or width, width), self.steps or 0.0)]
        return [*columns(width, n), *shrunk(width)]

    def _tuned(self, basis: Basis, products: FloatArray, codes: Codes) -> Setting:
        grid = self._settings(basis.width, len(codes))
        self.tried_ = []
        if len(grid) == 1:
            return grid[0]
        tried = tried_on(basis, products, Known.of(codes), grid)
        self.tried_ = [one.row() for one in tried]
        best = likeliest(tried).params
        return best["m"], best["steps"]

    def _sweep(
        self, smoother: Regression, codes: Codes, rng: np.random.Generator
    ) -> None:
        known, seed = Known.of(codes), int(rng.integers(2**63))
        made = stages(smoother, known, self.sweeps)
        coef = smoother.coefficients(made.targets[-1])
        self.at_anchors_ = smoother.basis.columns @ coef
        self._forget(partial(after_sweeps, smoother, known, made.exponents, seed))


def looser(basis: Basis, steps: float) -> list[Option]:
    """Return all columns with these steps, a half and a quarter of them."""
    found = []
    for fewer in (steps, steps / 2, steps / 4):
        params: dict[str, Any] = {"m": basis.width, "steps": fewer}
        smoother = regression(basis, basis.kept(basis.width, fewer))
        found.append(Option("spectral", params, smoother))
    return found


def columns(width: int, n: int) -> list[Setting]:
    """Return numbers of columns to try, fewest first, without shrinking."""
    found = [int(m) for m in _COLUMNS if m <= min(width, n // 4)]
    return [(m, 0.0) for m in found or [1]]


def shrunk(width: int) -> list[Setting]:
    """Return all columns with fewer and fewer steps."""
    return [(width, float(steps)) for steps in _STEPS[::-1]]


def sums(basis: Basis, codes: Codes) -> FloatArray:
    """Return the decoded codes summed at the anchors, (anchors, K), in blocks."""
    total = np.zeros((basis.ties.shape[1], codes.n_classes))
    for rows, part in codes.blocks():
        total += basis.ties[rows].T @ part.decode()
    return total


def _alone(
    basis: Basis,
    kept: FloatArray,
    products: FloatArray,
    codes: Codes,
    rows: NDArray[np.intp],
) -> LeftOut:
    """Return the votes for the basis' records (r,) without their own codes.

    ``products`` (M, K) are of all records.
    """
    own = leverages(basis, kept[:, None])
    votes = basis.ties @ (basis.columns @ (kept[:, None] * products))
    return LeftOut(rows, (votes - own * codes.decode()) / (1 - own))


def tried_on(
    basis: Basis, products: FloatArray, known: Known, grid: Sequence[Setting]
) -> list[Tried]:
    """Judge each setting by left-out votes for the basis' records."""
    kept = np.stack([basis.kept(*setting) for setting in grid], axis=1)
    owns = leverages(basis, kept)
    tried = []
    for place, (m, steps) in enumerate(grid):
        own = owns[:, place, None]
        votes = basis.ties @ (basis.columns @ (kept[:, place, None] * products))
        votes = (votes - own * known.decoded) / (1 - own)
        params: dict[str, Any] = {"m": m, "steps": steps}
        tried.append(judged("spectral", params, votes, known.likely))
    return tried
