"""Linear support vector machine (hinge loss), by an interior-point method, batched.

A primal-dual interior-point method: Mehrotra (1992), "On the implementation of a
primal-dual interior point method", for the quadratic program of Cortes and Vapnik
(1995). All problems of a block step together, one leaves when it has converged. Its
dozen steps hardly depend on the noise, unlike those of methods that exchange pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curvote import validate
from curvote.server.learners import newton
from curvote.server.learners.fits import BoolArray, Fits, FloatArray, has_one_class

SVM_ITERATIONS = 40
MAX_GAP = 1e-12  # mean complementarity at the end, in units of the mean objective
MAX_RESIDUAL = 1e-6  # of the stationarity, relative to the number of reports
BOUNDARY_STEPS = 0.98, 0.999999  # parts of the way to the boundary, as the gap closes
SVM_MAX_HARDNESS = 1e10  # C in units of 1/scale^2; above, the solution moves no more


def fit_svm(reports: FloatArray, labels: FloatArray, *, C: float = 1.0) -> Fits:
    """Return the minimisers of |w|^2/2 + C sum_i max(0, 1 - y_i (w . x_i + b)).

    ``reports`` [B, n, d] holds the x, ``labels`` [B, n] the y; ``C`` > 0; b is not
    penalised (scikit-learn's ``SVC(kernel="linear")``). w is unique; b is the middle
    of the optimal ones. A ``C`` above 1e10/scale^2, scale the largest distance from
    the mean, counts as that.

    Flagged: one class, or reports that are all the same (coef 0, intercept the
    majority's label), and what has not converged after 40 steps.
    """
    C = validate.positive(C=C)
    return newton.fit_in_blocks(lambda x, y: _fit_svm_block(x, y, C), reports, labels)


def _fit_svm_block(
    reports: FloatArray, labels: FloatArray, C: float
) -> newton.BlockFit:
    design = newton.standardised_design(reports, labels, jointly=True)
    scale = design.scale[:, 0]
    constant = has_one_class(labels) | ~np.isfinite(scale)
    # With so small a C no margin reaches 1, and w is proportional to C.
    softest = 0.1 / reports[0].size
    with np.errstate(over="ignore"):
        hardness = np.clip(C * scale**2, 0, SVM_MAX_HARDNESS)
    theta = np.zeros(design.signed.shape[:2])
    going = np.flatnonzero(~constant)
    inner = np.maximum(hardness[going], softest)
    theta[going], converged = _solve_interior(design.signed[going], inner)
    theta[going, 1:] *= (hardness[going] / inner)[:, None]
    theta[:, 0] = _optimal_intercept(theta, design.signed, labels)
    flagged = constant.copy()
    flagged[going] |= ~converged
    return *design.classifier(theta, labels, constant), flagged


def _optimal_intercept(
    theta: FloatArray, design: FloatArray, labels: FloatArray
) -> FloatArray:
    """Return the middle of the intercepts that minimise the hinge losses.

    Their sum is convex and piecewise linear in b, with kinks of slope 1 at y_i - w.x_i
    and slope -(number of positives) at first: it is flat behind that many kinks.
    """
    batch, n = labels.shape
    score = (theta[:, None, 1:] @ design[:, 1:])[:, 0] * labels
    kinks = np.sort(labels - score, axis=1)
    behind = (labels > 0).sum(axis=1)
    row = np.arange(batch)
    lower = kinks[row, np.maximum(behind - 1, 0)]
    upper = kinks[row, np.minimum(behind, n - 1)]
    return np.asarray((lower + upper) / 2)


@dataclass(frozen=True)
class _InteriorBatch(newton.Batch):
    """The unfinished problems of the interior-point method.

    ``rest`` is 1 - dual, exact near 0 too. All are positive, ``slack`` and
    ``violation`` as well, whose difference is margin - 1. ``penalty`` is (0, 1/C, ..).
    """

    design: FloatArray
    penalty: FloatArray
    theta: FloatArray
    dual: FloatArray
    rest: FloatArray
    slack: FloatArray
    violation: FloatArray


def _initial_state(design: FloatArray, hardness: FloatArray) -> _InteriorBatch:
    """Return the state at theta = 0, with a feasible dual."""
    batch, p, n = design.shape
    penalty = np.repeat(1 / hardness[:, None], p, axis=1)
    penalty[:, 0] = 0
    ones = np.ones((batch, n))
    labels = design[:, 0]
    dual = (1 - labels * labels.mean(axis=1)[:, None]) / 2
    zero = np.zeros((batch, p))
    return _InteriorBatch(
        np.arange(batch), design, penalty, zero, dual, 1 - dual, ones, 2 * ones
    )


def _solve_interior(
    design: FloatArray, hardness: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Return theta [B, p] for C = ``hardness`` [B], and which converged."""
    theta, converged = np.zeros(design.shape[:2]), np.zeros(len(design), dtype=bool)
    batch = _initial_state(design, hardness)
    for _ in range(SVM_ITERATIONS):
        batch, done = _interior_step(batch)
        theta[batch.index] = batch.theta
        converged[batch.index] = done
        batch = batch.select(~done)
        if not batch.index.size:
            break
    return theta, converged


def _interior_step(batch: _InteriorBatch) -> tuple[_InteriorBatch, BoolArray]:
    """Return the batch one step on, and which have converged."""
    a, rest, s, v = batch.dual, batch.rest, batch.slack, batch.violation
    system = _NewtonSystem(batch)
    gap = _complementarity(a, rest, s, v)
    aim_s, aim_v = _slack_targets(system, gap)
    move, da = system.direction(aim_s - aim_v)
    ds, dv = aim_s - system.by_slack * da, aim_v + system.by_violation * da
    dual = np.maximum(-da * system.per_a, da * system.per_rest)
    primal = np.minimum(ds / s, dv / v)
    inside = np.clip(1 - 10 * gap, *BOUNDARY_STEPS)
    most = np.maximum(dual, -primal).max(axis=1)
    length = (inside / np.maximum(most, inside))[:, None]
    da *= length
    state = (a + da, rest - da, s + length * ds, v + length * dv)
    stray = (np.abs(system.residual) * (1 - length)).max(axis=1)
    theta = batch.theta + length * move
    # The objective itself is tiny where a hard C separates the classes.
    worth = np.vecdot(batch.penalty, theta**2) / s.shape[1] + state[3].mean(axis=1)
    close = _complementarity(*state) <= MAX_GAP * np.minimum(worth, 1)
    done = close & (stray <= MAX_RESIDUAL * s.shape[1])
    return _InteriorBatch(batch.index, batch.design, batch.penalty, theta, *state), done


class _NewtonSystem:
    """The factorised linear equations of one step."""

    def __init__(self, batch: _InteriorBatch) -> None:
        self.batch = batch
        self.per_a, self.per_rest = 1 / batch.dual, 1 / batch.rest
        self.by_slack = batch.slack * self.per_a
        self.by_violation = batch.violation * self.per_rest
        self.weight = 1 / (self.by_slack + self.by_violation)
        self.residual = (
            _apply_design(batch.design, batch.dual) - batch.penalty * batch.theta
        )
        hessian = newton.weighted_gram(batch.design, self.weight)
        self.solve = newton.linear_solver(hessian, batch.penalty)

    def direction(self, pull: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the moves of theta and dual for wanted margins."""
        design = self.batch.design
        move = self.solve(self.residual + _apply_design(design, self.weight * pull))
        return move, self.weight * (pull - (move[:, None, :] @ design)[:, 0])


def _slack_targets(
    system: _NewtonSystem, gap: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the wanted changes of slack and violation.

    The predictor aims at a gap of 0. How far it gets says what to aim at next, and its
    bend da ds, -da dv, what to correct. Where it is cut short its bend counts for less:
    believed in full, the steps may go in circles.
    """
    s, v = system.batch.slack, system.batch.violation
    _, da = system.direction(v - s)
    near_s, near_v = 1 + da * system.per_a, da * system.per_rest - 1  # -ds/s and dv/v
    bend_s, bend_v = s * near_s, v * near_v
    most = np.maximum(np.abs(near_s - 0.5), np.abs(near_v + 0.5)).max(axis=1) + 0.5
    length = 1 / np.maximum(most, 1)
    bent = (np.vecdot(bend_s, da) + np.vecdot(bend_v, da)) / (2 * s.shape[1])
    reached = (1 - length) * gap - length**2 * bent
    target = ((reached / gap) ** 3 * gap)[:, None]
    da *= np.where(length < 0.5, length, 1)[:, None]
    bend_s *= da
    bend_v *= da
    aim_s = (target + bend_s) * system.per_a - s
    return aim_s, (target + bend_v) * system.per_rest - v


def _complementarity(
    a: FloatArray, rest: FloatArray, s: FloatArray, v: FloatArray
) -> FloatArray:
    return np.asarray((np.vecdot(a, s) + np.vecdot(rest, v)) / (2 * a.shape[1]))


def _apply_design(design: FloatArray, values: FloatArray) -> FloatArray:
    return np.asarray((design @ values[:, :, None])[:, :, 0])
