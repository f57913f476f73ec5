"""Canonical bases recomputed with NumPy: clients check a task's matrices with them.

A matrix that a task brings along is a name for a basis, nothing else: a client compares
it with its own and refuses whatever it cannot derive from name, size, order, domain and
number of grid points. So nobody's curve is multiplied by a matrix of the server's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.curves.basis import MAX_SPLINE_ORDER, Array, Projection, image_side

# Of the largest entry: between two good ways to solve the same least squares problem.
MATRIX_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class BasisMatrices:
    """Matrices of a basis on a grid: projection, Gram and slope products.

    ``matrix`` is the least-squares projection, ``gram`` and ``slopes`` hold the L2
    products of the functions and of their first derivatives. Without ``slopes`` there
    are no orthonormal coordinates beside these.
    """

    matrix: Array
    gram: Array
    slopes: Array | None = None


def check_projection(projection: Projection) -> None:
    """Refuse (UserError) a projection that is not the one of its name.

    Its grid is T equidistant points on its domain. Both coordinates are known: those of
    the functions, and the orthonormal ones, smoothest first, whose Gram matrix is the
    identity.
    """
    (d, points), (start, end) = projection.matrix.shape, projection.domain
    size, order = projection.size, projection.order
    conditions = {
        "identity": points == size and order == 1 and (start, end) == (1.0, size),
        "values": points == size > 1 and order == 1,
        "cosines": size <= points and order == 1 and (start, end) == (1.0, points),
        "fourier": size % 2 == 1 and size < points,
        "bspline": order <= min(size, MAX_SPLINE_ORDER) and size <= points,
    }
    name = validate.one_of(conditions, basis=projection.name)
    exists = conditions[name] and d == size
    if not exists or (start >= end and name not in ("identity", "cosines")):
        raise UserError(
            f"there is no basis {name} of size {size} and order {order} on {points}"
            f" points from {start:g} to {end:g} with {d} coefficients."
        )
    expected = basis_matrices(projection, points)
    actual = BasisMatrices(projection.matrix, projection.gram)
    pairs = (actual.gram, expected.gram), (actual.matrix, expected.matrix)
    same = all(_is_close(*pair) for pair in pairs)
    if not same and not _is_orthonormal_form(actual, expected):
        raise UserError(
            f"the task's matrix is not that of basis {name}, size {size}, order"
            f" {order}, on {points} equidistant points from {start:g} to {end:g}; a"
            " client multiplies its curve by no other."
        )


def basis_matrices(projection: Projection, points: int) -> BasisMatrices:
    """Return the matrices of the named basis on equidistant points."""
    name, size, order = projection.name, projection.size, projection.order
    if name == "identity":
        return BasisMatrices(np.eye(size), np.eye(size))
    if name == "cosines":
        return BasisMatrices(cosine_waves(points, size), np.eye(size))
    grid = np.linspace(*projection.domain, points)
    if name == "values":
        weights = np.full(points, (grid[-1] - grid[0]) / (points - 1))
        weights[[0, -1]] /= 2  # the trapezoid rule
        return BasisMatrices(np.eye(points), np.diag(weights))
    if name == "fourier":
        values = fourier_functions(grid, size)
        return BasisMatrices(_least_squares_matrix(values), np.eye(size))
    knots = np.linspace(*projection.domain, size - order + 2)
    # Nodes and weights that integrate spline products exactly.
    unit_nodes, unit_weights = np.polynomial.legendre.leggauss(order)
    half = np.diff(knots)[:, None] / 2
    middle = (knots[:-1] + knots[1:])[:, None] / 2
    nodes, weights = (middle + half * unit_nodes).ravel(), (half * unit_weights).ravel()
    inside = bspline_functions(nodes, knots, order)
    slopes = bspline_slopes(nodes, knots, order)
    return BasisMatrices(
        _least_squares_matrix(bspline_functions(grid, knots, order)),
        (inside * weights) @ inside.T,
        (slopes * weights) @ slopes.T,
    )


def cosine_waves(points: int, size: int) -> Array:
    """Return the lowest orthonormal cosines of a square of pixels, (size, points).

    s_i cos(pi i (x + 1/2) / side) down times the same across, s_0 = 1/sqrt(side) and
    sqrt(2/side) else, by i + j, then |i - j|, then i.
    """
    side = image_side(points)
    pixels = (np.arange(side) + 0.5) * (np.pi / side)
    waves = np.cos(np.outer(np.arange(side), pixels)) * np.sqrt(2 / side)
    waves[0] /= np.sqrt(2)
    frequencies = ((i + j, abs(i - j), i, j) for i in range(side) for j in range(side))
    lowest = sorted(frequencies)[:size]
    return np.array([np.outer(waves[i], waves[j]).ravel() for *_, i, j in lowest])


def fourier_functions(grid: Array, size: int) -> Array:
    """Return the orthonormal Fourier functions on a grid, (size, T).

    1/sqrt(L), then sqrt(2/L) sin and cos of 2 pi k t/L, as scikit-fda orders them.
    """
    period = grid[-1] - grid[0]
    k = 1 + np.arange(size // 2)
    phases = np.outer(k, grid) * (2 * np.pi / period)
    pairs = np.stack([np.sin(phases), np.cos(phases)], axis=1).reshape(-1, len(grid))
    constant = np.full((1, len(grid)), np.sqrt(0.5))
    return np.asarray(np.vstack([constant, pairs])[:size] * np.sqrt(2 / period))


def bspline_functions(points: Array, knots: Array, order: int) -> Array:
    """Return the B-splines of ``order`` on ``knots``, (functions, T).

    By the recursion of Cox and de Boor (de Boor 1978, chapter X), one degree after the
    other: on an interval only ``order`` functions are not 0.
    """
    intervals = np.searchsorted(knots, points, side="right") - 1
    first = np.clip(intervals, 0, len(knots) - 2)
    full = np.concatenate([[knots[0]] * (order - 1), knots, [knots[-1]] * (order - 1)])
    interval = first + order - 1  # full[at] <= point < full[at + 1]
    local = np.ones((1, len(points)))
    for degree in range(1, order):
        # N_{i,k}(x) = (x - t_i)/(t_{i+k} - t_i) N_{i,k-1} + (its mirror image)
        # N_{i+1,k-1}
        j = np.arange(degree)[:, None]
        left_knots = full[interval - degree + 1 + j]
        right_knots = full[interval + 1 + j]
        share = local / (right_knots - left_knots)
        local = np.zeros((degree + 1, len(points)))
        local[:-1] += (right_knots - points) * share
        local[1:] += (points - left_knots) * share
    values = np.zeros((len(knots) + order - 2, len(points)))
    values[first + np.arange(order)[:, None], np.arange(len(points))] = local
    return values


def bspline_slopes(points: Array, knots: Array, order: int) -> Array:
    """Return the first derivatives of the B-splines."""
    if order == 1:
        return np.zeros((len(knots) - 1, len(points)))
    # With full knots t: N'_{i,k} = (k - 1) (N_{i,k-1}/w_i - N_{i+1,k-1}/w_{i+1}).
    full = np.concatenate([[knots[0]] * (order - 1), knots, [knots[-1]] * (order - 1)])
    widths = full[order - 1 :] - full[: -order + 1]
    scaled = (
        (order - 1) * bspline_functions(points, knots, order - 1) / widths[1:-1, None]
    )
    slopes = np.zeros((len(scaled) + 1, len(points)))
    slopes[1:] += scaled
    slopes[:-1] -= scaled
    return slopes


def _least_squares_matrix(values: Array) -> Array:
    """Return the matrix that fits functions (d, T) to any curve, (d, T)."""
    # No larger than the matrix itself, whatever number of points a task states.
    return np.asarray(np.linalg.pinv(values.T, rcond=np.finfo(float).eps))


def _is_close(matrix: Array, expected: Array) -> bool:
    limit = MATRIX_TOLERANCE * np.abs(expected).max()
    return bool((np.abs(matrix - expected) <= limit).all())


def _is_orthonormal_form(actual: BasisMatrices, expected: BasisMatrices) -> bool:
    """Return whether ``actual`` is ``expected`` in orthonormal coordinates.

    With G = L L', the coordinates L' c are orthonormal, and all others are U L' c with
    an orthogonal U. U must turn the products of the slopes into an increasing diagonal,
    which leaves signs, and rotations among functions that are equally rough.
    """
    unit = np.eye(len(expected.gram))
    if expected.slopes is None or not _is_close(actual.gram, unit):
        return False
    lower = np.linalg.cholesky(expected.gram)
    straight = lower.T @ expected.matrix
    turn = np.linalg.lstsq(straight.T, actual.matrix.T, rcond=None)[0].T
    rough = np.linalg.solve(lower, np.linalg.solve(lower, expected.slopes).T)
    turned = turn @ rough @ turn.T
    ordered = np.diag(np.linalg.eigvalsh(rough))
    limit = max(np.abs(ordered).max(), np.finfo(float).tiny)
    return (
        _is_close(actual.matrix, turn @ straight)
        and _is_close(turn @ turn.T, np.eye(len(turn)))
        and bool((np.abs(turned - ordered) <= MATRIX_TOLERANCE * limit).all())
    )
