"""Margin-based learners: logistic regression, support vectors and DWD, batched.

Newton's method (iteratively reweighted least squares) on standardised coordinates, so
that neither the units of the reports nor an ill-placed origin matter.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.learning.learners import newton, registry
from curvote.learning.learners.registry import (
    BoolArray,
    Fits,
    FloatArray,
    has_one_class,
)

LOGISTIC_RIDGE = 1e-3  # flagged problems minimise loss + RIDGE/2 |standardised coef|^2
LOGISTIC_ITERATIONS = 25  # as R's glm
RIDGE_ITERATIONS = 100
COLLINEAR = 1e-12  # smallest eigenvalue of the correlation matrix


def fit_logistic(reports: FloatArray, labels: FloatArray) -> Fits:
    """Return the maximum-likelihood fits to ``reports``, ``labels``.

    Flagged are problems without a unique maximum: separable (some iterate has every
    point on its right side), collinear, or not converged after 25 iterations; these
    get the ridge penalty RIDGE = 1e-3 on the coefficients in units of each
    coordinate's standard deviation, the intercept free. One class only: flagged, the
    constant classifier with coef 0 and intercept +1 or -1. This fit reproduces the
    tables of MRMA; scikit-learn's default penalty does not.
    """
    return newton.fit_in_blocks(_fit_logistic_block, reports, labels, LOGISTIC_RIDGE)


def _fit_logistic_block(reports: FloatArray, labels: FloatArray) -> newton.BlockFit:
    """Return coef, intercept and flags of a block of problems."""
    design = newton.standardised_design(reports, labels)
    theta = np.zeros(design.signed.shape[:2])
    constant = has_one_class(labels)
    slopes = design.signed[:, 1:]
    correlation = slopes @ slopes.swapaxes(1, 2) / slopes.shape[2]
    regular = ~constant & ~np.asarray(np.linalg.eigvalsh(correlation)[:, 0] < COLLINEAR)
    penalty = np.full(theta.shape, LOGISTIC_RIDGE)
    penalty[:, 0] = 0
    first = np.flatnonzero(regular)
    theta[first], regular[first] = newton.minimise(
        _logistic_loss,
        design.signed[first],
        0 * penalty[first],
        iterations=LOGISTIC_ITERATIONS,
        until_separated=True,
    )
    again = ~regular & ~constant
    theta[again], _ = newton.minimise(
        _logistic_loss,
        design.signed[again],
        penalty[again],
        iterations=RIDGE_ITERATIONS,
    )
    return *design.classifier(theta, labels, constant), ~regular


def _logistic_loss(margin: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    small = np.exp(-np.abs(margin))  # never overflows; the sigmoid in either tail
    wrong = np.where(margin > 0, small, 1) / (1 + small)
    loss = np.log1p(small) + np.maximum(-margin, 0)
    return loss, wrong, small / (1 + small) ** 2


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


def _solve_interior(
    design: FloatArray, hardness: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Return theta [B, p] for C = ``hardness`` [B], and which converged."""
    theta, converged = np.zeros(design.shape[:2]), np.zeros(len(design), dtype=bool)
    penalty = np.repeat(1 / hardness[:, None], design.shape[1], axis=1)
    penalty[:, 0] = 0
    labels, index = design[:, 0], np.arange(len(design))
    # At theta = 0, with a feasible dual.
    dual = (1 - labels * labels.mean(axis=1)[:, None]) / 2
    state = dual, 1 - dual, np.ones_like(dual), np.full_like(dual, 2)
    batch = _InteriorBatch(index, design, penalty, theta.copy(), *state)
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
        self.residual = _apply_design(batch.design, batch.dual)
        self.residual -= batch.penalty * batch.theta
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


SQUARED_ITERATIONS = 40
EASING = 4.0 ** np.arange(15, -1, -1)  # of a penalty under which Newton is lost
# C in units of 1/scale^2; above, rounding errors would decide.
SQUARED_MAX_HARDNESS = 1e10
SQUARED_MIN_HARDNESS = 1e-100  # below, the penalty would overflow


def fit_svm_squared(reports: FloatArray, labels: FloatArray, *, C: float = 1.0) -> Fits:
    """Return the minimisers of |w|^2/2 + C sum_i max(0, 1 - y_i f(x_i))^2.

    ``reports`` [B, n, d] holds the x, ``labels`` [B, n] the y; ``C`` > 0; b is not
    penalised. A ``C`` above 1e10/scale^2, scale the largest distance from the mean,
    counts as that.

    Flagged: one class, or reports that are all the same (coef 0, intercept the
    majority's label), and what has not converged in the end.
    """
    C = validate.positive(C=C)
    return newton.fit_in_blocks(
        lambda x, y: _fit_squared_block(x, y, C), reports, labels
    )


def _fit_squared_block(
    reports: FloatArray, labels: FloatArray, C: float
) -> newton.BlockFit:
    design = newton.standardised_design(reports, labels, jointly=True)
    scale = design.scale[:, 0]
    constant = has_one_class(labels) | ~np.isfinite(scale)
    theta, regular = np.zeros(design.signed.shape[:2]), ~constant
    going = np.flatnonzero(regular)
    with np.errstate(over="ignore", under="ignore"):
        hardness = C * scale[going] ** 2
        hardness = np.clip(hardness, SQUARED_MIN_HARDNESS, SQUARED_MAX_HARDNESS)
    penalty = np.zeros((len(going), design.signed.shape[1]))
    penalty[:, 1:] = 1 / hardness[:, None]
    minimise = partial(
        newton.minimise, _squared_hinge_loss, iterations=SQUARED_ITERATIONS
    )
    theta[going], regular[going] = minimise(design.signed[going], penalty)
    # Where Newton's method from 0 is lost, as where few reports leave many directions
    # open, it comes from a larger penalty in steps.
    lost = np.flatnonzero(~regular[going])
    if lost.size:
        places = going[lost]
        near = np.zeros_like(theta[places])
        for firmer in EASING:
            near, regular[places] = minimise(
                design.signed[places], penalty[lost] * firmer, start=near
            )
        theta[places] = near
    return *design.classifier(theta, labels, constant), ~regular


def _squared_hinge_loss(
    margin: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    short = np.maximum(1 - margin, 0)
    return short**2, 2 * short, np.where(short > 0, 2.0, 0.0)


DWD_RIDGE = 1e-6  # flagged problems add RIDGE/2 |scaled coef|^2 to the mean loss
DWD_ITERATIONS = 100
MAX_CURVATURE = 4.0  # curvature of V nowhere exceeds it, so such a step always descends
MAX_PENALTY = 1e150  # penalties above would overflow; their coefficients are 0 by then
# Eigenvalues below this part of the largest are rounding errors.
FLAT_EIGENVALUE = 1e-12


def fit_dwd(
    reports: FloatArray,
    labels: FloatArray,
    *,
    gram: ArrayLike | None = None,
    roughness: ArrayLike | None = None,
    penalty: float = 0.01,
) -> Fits:
    """Return the minimisers of mean_i V(y_i (a + b . z_i)) + ``penalty`` J(b).

    ``reports`` [B, n, d] holds the z, ``labels`` [B, n] the y; coef is b, intercept a.
    ``roughness`` R [d, d] makes the reports coefficients of curves: with ``gram`` G
    [d, d] (symmetric, positive definite; default identity), R_ij = integral of
    phi_i'' phi_j'', the slope function is beta = sum_k c_k phi_k, b = G c, and
    J = c'Rc = integral of beta''^2. Without it J = |b|^2: ordinary linear
    distance-weighted discrimination. ``penalty`` > 0.

    Flagged: one class, or reports that are all the same (coef 0, intercept the
    majority's label), and no minimum within 100 steps, as where a slope function that
    costs nothing separates the classes: RIDGE/2 |coef|^2 is added, in units of the
    largest distance from the mean. Where a minimum is not unique, which takes classes
    of equal size and margins below 1/2, it is the one that Newton's method finds
    from 0.
    """
    weights, axes = _roughness_axes(reports.shape[2], gram, roughness)
    weights = weights * validate.positive(penalty=penalty)
    return newton.fit_in_blocks(
        lambda x, y: _fit_dwd_block(x, y, weights, axes), reports, labels, DWD_RIDGE
    )


def _roughness_axes(
    d: int, gram: ArrayLike | None, roughness: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Return weights k [d] and axes U [d, d] of the roughness penalty."""
    if roughness is None:
        return np.ones(d), np.eye(d)
    inverse = np.linalg.inv(np.eye(d) if gram is None else registry.check_gram(gram, d))
    rough = validate.finite(roughness=roughness)
    if rough.shape != (d, d) or not np.allclose(rough, rough.T, atol=0):
        raise UserError(
            f"roughness has shape {rough.shape}; it must be symmetric, ({d}, {d})."
        )
    values, vectors = np.linalg.eigh(inverse @ rough @ inverse)
    if values[0] < -1e-6 * values[-1]:
        raise UserError(
            "roughness has negative eigenvalues; no integral of squares has."
        )
    return np.where(values > FLAT_EIGENVALUE * values[-1], values, 0.0), vectors


def _fit_dwd_block(
    reports: FloatArray, labels: FloatArray, weights: FloatArray, axes: FloatArray
) -> newton.BlockFit:
    n = labels.shape[1]
    design = newton.standardised_design(reports, labels, jointly=True)
    with np.errstate(over="ignore", under="ignore"):
        weights = np.minimum(2 * weights / design.scale**2, MAX_PENALTY)
    # Each axis is stretched as much as it is penalised, which keeps Hessians well
    # conditioned whatever the roughness of its function.
    stretch, signed = np.sqrt(1 + weights), design.signed
    signed[:, 1:] = axes.T @ signed[:, 1:] / stretch[:, :, None]
    penalty = np.zeros(signed.shape[:2])
    penalty[:, 1:] = n * weights / (1 + weights)
    constant = has_one_class(labels) | ~np.isfinite(design.scale[:, 0])
    theta, regular = np.zeros(signed.shape[:2]), ~constant
    minimise = partial(
        newton.minimise, _dwd_loss, iterations=DWD_ITERATIONS, damping=MAX_CURVATURE
    )
    first = np.flatnonzero(regular)
    theta[first], regular[first] = minimise(signed[first], penalty[first])
    again = ~regular & ~constant
    penalty[again, 1:] += DWD_RIDGE * n / stretch[again] ** 2
    theta[again], _ = minimise(signed[again], penalty[again])
    theta[:, 1:] = ((theta[:, 1:] / stretch)[:, None, :] @ axes.T)[:, 0]
    return *design.classifier(theta, labels, constant), ~regular


def _dwd_loss(margin: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    far = np.maximum(margin, 0.5)
    beyond = margin > 0.5
    loss = np.where(beyond, 0.25 / far, 1 - margin)
    return loss, 0.25 / far**2, np.where(beyond, 0.5 / far**3, 0.0)
