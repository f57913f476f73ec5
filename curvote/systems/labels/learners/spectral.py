"""Regression of the codes on the eigenvectors of the features' graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.validate import FloatArray
from curvote.systems.labels.codes.codes import Codes
from curvote.systems.labels.learners.base import Learner, LeftOutVotes
from curvote.systems.labels.learners.calibration import (
    Trial,
    likeliest_trial,
    make_trial,
    sample_rows,
)
from curvote.systems.labels.learners.graph import (
    Basis,
    BasisRegression,
    Spectral,
    fit_graph,
    leverages,
    make_regression,
)
from curvote.systems.labels.learners.smoothing import (
    CodeTargets,
    SweepOption,
    run_sweeps,
    votes_after_sweeps,
)

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
        self.spectral_ = self._fit_graph(X, codes.n_classes, unlabelled)
        basis = Basis.from_graph(self.spectral_, X)
        rows = sample_rows(len(X), max(basis.width, codes.n_classes), rng)
        products = basis.columns.T @ anchor_sums(basis, codes)
        m, steps = self._tune_setting(basis.take(rows), products, codes[rows])
        self.chosen_ = {"m": m, "steps": steps, "sweeps": self.sweeps}
        shrinkage = basis.shrinkage(m, steps)
        if self.sweeps:
            self._sweep(make_regression(basis, shrinkage), codes, rng)
        else:
            self.at_anchors_ = basis.columns @ (shrinkage[:, None] * products)
            part = basis.take(rows)
            self._set_left_out(
                partial(_left_out_votes, part, shrinkage, products, codes[rows], rows)
            )
        return self

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the votes of the records' anchors, weighted."""
        return np.asarray(self.spectral_.ties(X) @ self.at_anchors_)

    def fixed(self) -> Self:
        """Return an unfitted learner with stated settings, on the given graph."""
        learner = cast("Self", super().fixed())
        learner.spectral = self.spectral
        return learner

    def _fit_graph(
        self, X: FloatArray, n_classes: int, unlabelled: FloatArray | None
    ) -> Spectral:
        if self.spectral is not None:
            return self.spectral
        every = X if unlabelled is None else np.vstack([X, unlabelled])
        return fit_graph(
            every,
            n_classes,
            m=None if self.steps else self.m,
            anchors=self.anchors,
            neighbours=self.neighbours,
        )

    def _setting_grid(self, width: int, n: int) -> list[Setting]:
        """Return the settings to be tried: columns, and steps."""
        if self.m is not None or self.steps is not None:
            return [(min(self.m or width, width), self.steps or 0.0)]
        return [*column_grid(width, n), *step_grid(width)]

    def _tune_setting(
        self, basis: Basis, products: FloatArray, codes: Codes
    ) -> Setting:
        grid = self._setting_grid(basis.width, len(codes))
        self.tried_ = []
        if len(grid) == 1:
            return grid[0]
        tried = judge_settings(basis, products, CodeTargets.from_codes(codes), grid)
        self.tried_ = [trial.to_row() for trial in tried]
        best = likeliest_trial(tried).params
        return best["m"], best["steps"]

    def _sweep(
        self, smoother: BasisRegression, codes: Codes, rng: np.random.Generator
    ) -> None:
        code_targets, seed = CodeTargets.from_codes(codes), int(rng.integers(2**63))
        history = run_sweeps(smoother, code_targets, self.sweeps)
        coef = smoother.coefficients(history.targets[-1])
        self.at_anchors_ = smoother.basis.columns @ coef
        self._set_left_out(
            partial(votes_after_sweeps, smoother, code_targets, history.exponents, seed)
        )


def looser_options(basis: Basis, steps: float) -> list[SweepOption]:
    """Return all columns with these steps, a half and a quarter of them."""
    options = []
    for fewer in (steps, steps / 2, steps / 4):
        params: dict[str, Any] = {"m": basis.width, "steps": fewer}
        smoother = make_regression(basis, basis.shrinkage(basis.width, fewer))
        options.append(SweepOption("spectral", params, smoother))
    return options


def column_grid(width: int, n: int) -> list[Setting]:
    """Return numbers of columns to try, fewest first, without shrinking."""
    counts = [int(m) for m in _COLUMNS if m <= min(width, n // 4)]
    return [(m, 0.0) for m in counts or [1]]


def step_grid(width: int) -> list[Setting]:
    """Return all columns with fewer and fewer steps."""
    return [(width, float(steps)) for steps in _STEPS[::-1]]


def anchor_sums(basis: Basis, codes: Codes) -> FloatArray:
    """Return the decoded codes summed at the anchors, (anchors, K), in blocks."""
    total = np.zeros((basis.ties.shape[1], codes.n_classes))
    for rows, part in codes.blocks():
        total += basis.ties[rows].T @ part.decode()
    return total


def _left_out_votes(
    basis: Basis,
    shrinkage: FloatArray,
    products: FloatArray,
    codes: Codes,
    rows: NDArray[np.intp],
) -> LeftOutVotes:
    """Return the votes for the basis' records (r,) without their own codes.

    ``products`` (M, K) are of all records.
    """
    leverage = leverages(basis, shrinkage[:, None])
    votes = basis.ties @ (basis.columns @ (shrinkage[:, None] * products))
    return LeftOutVotes(rows, (votes - leverage * codes.decode()) / (1 - leverage))


def judge_settings(
    basis: Basis,
    products: FloatArray,
    code_targets: CodeTargets,
    grid: Sequence[Setting],
) -> list[Trial]:
    """Judge each setting by left-out votes for the basis' records, and return all."""
    shrinkage = np.stack([basis.shrinkage(*setting) for setting in grid], axis=1)
    all_leverages = leverages(basis, shrinkage)
    tried = []
    for place, (m, steps) in enumerate(grid):
        leverage = all_leverages[:, place, None]
        votes = basis.ties @ (basis.columns @ (shrinkage[:, place, None] * products))
        votes = (votes - leverage * code_targets.decoded) / (1 - leverage)
        params: dict[str, Any] = {"m": m, "steps": steps}
        tried.append(make_trial("spectral", params, votes, code_targets.likely))
    return tried
