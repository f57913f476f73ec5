"""Newton's method for many small convex problems at once.

Each problem minimises sum_i V(u_i) + 1/2 sum_k penalty_k theta_k^2 over theta, where
u = theta' design are the margins of n reports and V is convex. All problems of a block
take their steps together, written with ``matmul``; one leaves when it has converged.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from curvote.learning.learners import registry
from curvote.learning.learners.registry import BoolArray, Fits, FloatArray

JITTER = 1e-13  # part of the trace that keeps every Hessian invertible
BLOCK = 2**16  # values that are worked on together, so that they stay in the cache
TOLERANCE = 1e-8  # largest step, relative to 1 + the largest coefficient
MAX_ELIMINATED = 8  # largest matrices that are eliminated side by side
ROUNDING = 1e-12  # a loss that grows by less has not grown
DAMPING_RELIEF = 0.1  # of the damping, after each step that did not increase the loss
UNDAMPED = 1e-5  # of the first damping: what is left moves no minimum

BlockFit = tuple[FloatArray, FloatArray, BoolArray]
Solver = Callable[[FloatArray], FloatArray]
# Of the margins [B, n]: V, -V' and V'', each [B, n]
Loss = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]


def fit_in_blocks(
    fit_block: Callable[[FloatArray, FloatArray], BlockFit],
    reports: FloatArray,
    labels: FloatArray,
    ridge: float = 0.0,
) -> Fits:
    """Return the fits of ``fit_block`` to all problems, block by block."""
    problems = max(1, BLOCK // reports[0].size)
    blocks = [
        fit_block(reports[start : start + problems], labels[start : start + problems])
        for start in range(0, len(reports), problems)
    ]
    coef, intercept, flagged = (np.concatenate(p) for p in zip(*blocks, strict=True))
    return Fits(coef, intercept, flagged, ridge)


@dataclass(frozen=True)
class Design:
    """Signed, standardised reports of a block: label * (1, z).

    ``centre`` is [B, d]. ``scale`` is [B, d], each coordinate's standard deviation, or
    [B, 1], the problem's largest distance from the centre; where nothing varies it is
    infinite: those coordinates become 0, and so does their coef.
    """

    signed: FloatArray
    centre: FloatArray
    scale: FloatArray

    def classifier(
        self, theta: FloatArray, labels: FloatArray, constant: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return coef and intercept in the units of the reports.

        ``constant`` problems [B] get the majority of their ``labels`` as intercept.
        """
        coef = theta[:, 1:] / self.scale
        intercept = theta[:, 0] - (coef * self.centre).sum(axis=1)
        intercept[constant] = registry.majority_label(labels[constant])
        return coef, intercept


def standardised_design(
    reports: FloatArray, labels: FloatArray, *, jointly: bool = False
) -> Design:
    """Return the signed, standardised design of a block of problems."""
    batch, n, d = reports.shape
    signed = np.ones((batch, d + 1, n))
    centre = reports.mean(axis=1)
    slopes = signed[:, 1:]
    np.subtract(reports.swapaxes(1, 2), centre[:, :, None], out=slopes)
    if jointly:
        scale = np.abs(slopes).max(axis=(1, 2))[:, None]
        size = np.abs(centre).max(axis=1)[:, None]
    else:
        scale, size = np.sqrt(np.square(slopes).mean(axis=2)), np.abs(centre)
    scale[scale <= registry.NEGLIGIBLE * size + 1 / 1e100] = np.inf
    slopes /= scale[:, :, None]
    signed *= labels[:, None, :]
    return Design(signed, centre, scale)


@dataclass(frozen=True)
class Batch:
    """Unfinished problems by ``index``; every field has a row for each."""

    index: NDArray[np.intp]

    def select(self, mask: BoolArray) -> Self:
        """Return the problems that are true in ``mask``."""
        if mask.all():
            return self
        return type(self)(*(getattr(self, field.name)[mask] for field in fields(self)))


@dataclass(frozen=True)
class _NewtonBatch(Batch):
    """The unfinished problems, each at ``base`` with a ``step`` to try."""

    design: FloatArray
    penalty: FloatArray
    base: FloatArray
    step: FloatArray
    loss: FloatArray
    damping: FloatArray

    def advance(
        self,
        theta: FloatArray,
        step: FloatArray,
        loss: FloatArray,
        worse: BoolArray,
        most: float,
    ) -> Self:
        """Return the problems after a trial; worse steps are halved."""
        relief = np.where(worse, 1 / DAMPING_RELIEF, DAMPING_RELIEF)
        return replace(
            self,
            base=theta[self.index],
            step=np.where(worse[:, None], self.step / 2, step),
            loss=np.where(worse, self.loss, loss),
            damping=np.minimum(self.damping * relief, most),
        )


def minimise(
    loss: Loss,
    design: FloatArray,
    penalty: FloatArray,
    *,
    iterations: int,
    damping: float = 0.0,
    until_separated: bool = False,
    start: FloatArray | None = None,
) -> tuple[FloatArray, BoolArray]:
    """Return the minimisers [B, p] for ``design`` [B, p, n] and ``penalty`` [B, p].

    Also returns which problems converged within ``iterations``. A step that increases
    the loss is halved until it does not. ``damping`` is the least curvature that V is
    credited with at first; it fades, and returns where it was missed: for losses with
    straight pieces. ``start`` [B, p] is 0 where none is given. ``until_separated``: a
    problem also stops, as not converged, once every margin is positive.
    """
    theta = np.zeros(design.shape[:2]) if start is None else start.copy()
    converged = np.zeros(len(design), dtype=bool)
    index, nowhere = np.arange(len(design)), np.full(len(design), np.inf)
    least = np.full(len(design), damping)
    batch = _NewtonBatch(index, design, penalty, theta, 0 * theta, nowhere, least)
    for _ in range(iterations):
        position = batch.base + batch.step
        value, step, margin = _evaluate(loss, batch, position)
        worse = value > batch.loss * (1 + ROUNDING)
        size = 1 + np.abs(position).max(axis=1)
        small = np.abs(step).max(axis=1) <= TOLERANCE * size
        separated = (margin > 0) & until_separated
        done = small & ~worse & ~separated & (batch.damping <= UNDAMPED * damping)
        last = done[:, None] * step  # free, and squares the remaining error
        theta[batch.index] = np.where(worse[:, None], batch.base, position + last)
        converged[batch.index] = done
        batch = batch.advance(theta, step, value, worse, damping)
        batch = batch.select(~(done | separated))
        if not batch.index.size:
            break
    return theta, converged


def _evaluate(
    loss: Loss, batch: _NewtonBatch, theta: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return loss [B], Newton step [B, p] and least margin [B] at theta."""
    margin = (theta[:, None, :] @ batch.design)[:, 0]
    value, weight, curvature = loss(margin)
    total = value.sum(axis=1) + (batch.penalty * theta**2).sum(axis=1) / 2
    descent = (batch.design @ weight[:, :, None])[:, :, 0] - batch.penalty * theta
    curvature = np.maximum(curvature, batch.damping[:, None])
    step = linear_solver(weighted_gram(batch.design, curvature), batch.penalty)(descent)
    return total, step, margin.min(axis=1)


def weighted_gram(design: FloatArray, weight: FloatArray) -> FloatArray:
    """Return design diag(weight) design', [B, p, p]."""
    return np.asarray((design * weight[:, None, :]) @ design.swapaxes(1, 2))


def linear_solver(hessian: FloatArray, penalty: FloatArray) -> Solver:
    """Return a solver of (hessian + penalty) x = right.

    ``hessian`` [B, p, p] is overwritten, ``penalty`` is [B, p]; a jitter, which moves
    no minimum, makes both together positive definite. Small matrices are eliminated
    side by side, which is several times quicker than one after the other.
    """
    jitter = JITTER * np.maximum(np.trace(hessian, axis1=1, axis2=2), 1 / 1e100)
    p = hessian.shape[1]
    diagonal = np.arange(p)
    hessian[:, diagonal, diagonal] += penalty + jitter[:, None]
    if p > MAX_ELIMINATED:
        return partial(_solve_dense, hessian)
    upper = np.ascontiguousarray(hessian.transpose(1, 2, 0))
    pivots = _factorise(upper, jitter)
    return partial(_substitute, upper, pivots)


def _solve_dense(hessian: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.solve(hessian, right[:, :, None])[:, :, 0])


def _factorise(upper: FloatArray, least: FloatArray) -> FloatArray:
    """Factorise [p, p, B] in place into U'DU; return D [p, B]."""
    pivots = np.empty(upper.shape[1:])
    for k in range(len(upper)):
        pivots[k] = np.maximum(upper[k, k], least)
        row = upper[k, k + 1 :] / pivots[k]
        upper[k + 1 :, k + 1 :] -= row[:, None] * upper[k, k + 1 :]
        upper[k, k + 1 :] = row
    return pivots


def _substitute(upper: FloatArray, pivots: FloatArray, right: FloatArray) -> FloatArray:
    """Return the solutions of factorised systems for ``right`` [B, p]."""
    x = right.T.copy()
    for k in range(len(upper)):
        x[k + 1 :] -= upper[k, k + 1 :] * x[k]
    x /= pivots
    for k in reversed(range(len(upper))):
        x[:k] -= upper[:k, k] * x[k]
    return x.T
