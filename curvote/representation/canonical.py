"""The named bases, computed again with NumPy alone: what a client holds a task to.

A matrix that a task brings along is a name for a basis, nothing else: a client compares
it with its own and refuses whatever it cannot derive from name, size, order, domain and
number of grid points. So nobody's curve is multiplied by a matrix of the server's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.representation.basis import MOST_ORDER, Projection
from curvote.representation.cosines import side_of

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Of the largest entry: between two good ways to solve the same least squares problem.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Functions:
    """A basis seen through a grid: ``matrix`` (d, T), ``gram`` and ``slopes`` (d, d).

    ``matrix`` is the least-squares projection, ``gram`` and ``slopes`` hold the L2
    products of the functions and of their first derivatives. Without ``slopes`` there
    are no orthonormal coordinates beside these.
    """

    matrix: Array
    gram: Array
    slopes: Array | None = None


def check(given: Projection) -> None:
    """Refuse (UserError) a projection that is not the one of its name.

    Its grid is T equidistant points on its domain. Both coordinates are known: those of
    the functions, and the orthonormal ones, smoothest first, whose Gram matrix is the
    identity.
    """
    points, (start, end) = given.matrix.shape[1], given.domain
    _check_numbers(given)
    own = named(given, points)
    seen = Functions(given.matrix, given.gram)
    plain = _close(seen.gram, own.gram) and _close(seen.matrix, own.matrix)
    if not plain and not _orthonormal(seen, own):
        raise UserError(
            f"the task's matrix is not that of basis {given.name}, size {given.size},"
            f" order {given.order}, on {points} equidistant points from {start:g} to"
            f" {end:g}; a client multiplies its curve by no other."
        )


def _check_numbers(given: Projection) -> None:
    """Refuse a basis that does not exist, before anything of its size is made."""
    (d, points), (start, end) = given.matrix.shape, given.domain
    size, order = given.size, given.order
    known = {
        "identity": points == size and order == 1 and (start, end) == (1.0, size),
        "values": points == size > 1 and order == 1,
        "cosines": size <= points and order == 1 and (start, end) == (1.0, points),
        "fourier": size % 2 == 1 and size < points,
        "bspline": order <= min(size, MOST_ORDER) and size <= points,
    }
    exists = known[validate.one_of(known, basis=given.name)] and d == size
    if not exists or (start >= end and given.name not in ("identity", "cosines")):
        raise UserError(
            f"there is no basis {given.name} of size {size} and order {order} on"
            f" {points} points from {start:g} to {end:g} with {d} coefficients."
        )


def named(given: Projection, points: int) -> Functions:
    """Return the basis that ``given`` names, on ``points`` equidistant grid points."""
    if given.name == "identity":
        return Functions(np.eye(given.size), np.eye(given.size))
    if given.name == "cosines":
        return Functions(cosine_waves(points, given.size), np.eye(given.size))
    grid = np.linspace(*given.domain, points)
    if given.name == "values":
        return Functions(np.eye(points), np.diag(_trapezoid(grid)))
    if given.name == "fourier":
        values = fourier(grid, given.size)
        return Functions(_least_squares(values), np.eye(given.size))
    return _splines(grid, given)


def _splines(grid: Array, given: Projection) -> Functions:
    order = given.order
    knots = np.linspace(*given.domain, given.size - order + 2)
    nodes, weights = _gauss(knots, order)
    inside, slopes = (f(nodes, knots, order) for f in (bspline, bspline_slopes))
    return Functions(
        _least_squares(bspline(grid, knots, order)),
        (inside * weights) @ inside.T,
        (slopes * weights) @ slopes.T,
    )


def cosine_waves(points: int, size: int) -> Array:
    """Return the lowest orthonormal cosines of a square of pixels, (size, points).

    s_i cos(pi i (x + 1/2) / side) down times the same across, s_0 = 1/sqrt(side) and
    sqrt(2/side) else, by i + j, then |i - j|, then i.
    """
    side = side_of(points)
    pixels = (np.arange(side) + 0.5) * (np.pi / side)
    waves = np.cos(np.outer(np.arange(side), pixels)) * np.sqrt(2 / side)
    waves[0] /= np.sqrt(2)
    every = ((i + j, abs(i - j), i, j) for i in range(side) for j in range(side))
    lowest = sorted(every)[:size]
    return np.array([np.outer(waves[i], waves[j]).ravel() for *_, i, j in lowest])


def fourier(grid: Array, size: int) -> Array:
    """Return the orthonormal Fourier functions of the grid's length, (size, T).

    1/sqrt(L), then sqrt(2/L) sin and cos of 2 pi k t/L, as scikit-fda orders them.
    """
    period = grid[-1] - grid[0]
    k = 1 + np.arange(size // 2)
    phases = np.outer(k, grid) * (2 * np.pi / period)
    pairs = np.stack([np.sin(phases), np.cos(phases)], axis=1).reshape(-1, len(grid))
    constant = np.full((1, len(grid)), np.sqrt(0.5))
    return np.asarray(np.vstack([constant, pairs])[:size] * np.sqrt(2 / period))


def bspline(points: Array, knots: Array, order: int) -> Array:
    """Return the B-splines of ``order`` on ``knots``, (len(knots) + order - 2, T).

    By the recursion of Cox and de Boor (de Boor 1978, chapter X), one degree after the
    other: on an interval only ``order`` functions are not 0.
    """
    first = _intervals(points, knots)
    full = np.concatenate([[knots[0]] * (order - 1), knots, [knots[-1]] * (order - 1)])
    at = first + order - 1  # full[at] <= point < full[at + 1]
    local = np.ones((1, len(points)))
    for degree in range(1, order):
        local = _raised(local, points, full, at, degree)
    values = np.zeros((len(knots) + order - 2, len(points)))
    values[first + np.arange(order)[:, None], np.arange(len(points))] = local
    return values


def _raised(local: Array, x: Array, full: Array, at: Index, degree: int) -> Array:
    """Return the ``degree`` + 1 functions that live at each x from those of degree - 1.

    N_{i,k}(x) = (x - t_i)/(t_{i+k} - t_i) N_{i,k-1} + (its mirror image) N_{i+1,k-1}.
    """
    j = np.arange(degree)[:, None]
    left, right = full[at - degree + 1 + j], full[at + 1 + j]
    share = local / (right - left)
    higher = np.zeros((degree + 1, len(x)))
    higher[:-1] += (right - x) * share
    higher[1:] += (x - left) * share
    return higher


def bspline_slopes(points: Array, knots: Array, order: int) -> Array:
    """Return the first derivatives of the same functions: differences of lower ones."""
    if order == 1:
        return np.zeros((len(knots) - 1, len(points)))
    # With full knots t: N'_{i,k} = (k - 1) (N_{i,k-1}/w_i - N_{i+1,k-1}/w_{i+1}).
    full = np.concatenate([[knots[0]] * (order - 1), knots, [knots[-1]] * (order - 1)])
    widths = full[order - 1 :] - full[: -order + 1]
    scaled = (order - 1) * bspline(points, knots, order - 1) / widths[1:-1, None]
    slopes = np.zeros((len(scaled) + 1, len(points)))
    slopes[1:] += scaled
    slopes[:-1] -= scaled
    return slopes


def _intervals(points: Array, knots: Array) -> Index:
    """Return the interval of each point; the right end belongs to the last."""
    found = np.searchsorted(knots, points, side="right") - 1
    return np.clip(found, 0, len(knots) - 2)


def _gauss(knots: Array, order: int) -> tuple[Array, Array]:
    """Return nodes and weights that integrate products of two splines exactly."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    half = np.diff(knots)[:, None] / 2
    middle = (knots[:-1] + knots[1:])[:, None] / 2
    return (middle + half * nodes).ravel(), (half * weights).ravel()


def _least_squares(values: Array) -> Array:
    """Return the matrix that fits functions ``values`` (d, T) to any curve, (d, T)."""
    # No larger than the matrix itself, whatever number of points a task states.
    return np.asarray(np.linalg.pinv(values.T, rcond=np.finfo(float).eps))


def _trapezoid(grid: Array) -> Array:
    weights = np.full(len(grid), (grid[-1] - grid[0]) / (len(grid) - 1))
    weights[[0, -1]] /= 2
    return weights


def _close(given: Array, own: Array) -> bool:
    return bool((np.abs(given - own) <= TOLERANCE * np.abs(own).max()).all())


def _orthonormal(given: Functions, own: Functions) -> bool:
    """Say whether ``given`` is ``own`` in L2-orthonormal coordinates, smoothest first.

    With G = L L', the coordinates L' c are orthonormal, and all others are U L' c with
    an orthogonal U. U must turn the products of the slopes into an increasing diagonal,
    which leaves signs, and rotations among functions that are equally rough.
    """
    if own.slopes is None or not _close(given.gram, np.eye(len(own.gram))):
        return False
    lower = np.linalg.cholesky(own.gram)
    straight = lower.T @ own.matrix
    turn = np.linalg.lstsq(straight.T, given.matrix.T, rcond=None)[0].T
    rough = np.linalg.solve(lower, np.linalg.solve(lower, own.slopes).T)
    turned = turn @ rough @ turn.T
    ordered = np.diag(np.linalg.eigvalsh(rough))
    limit = max(np.abs(ordered).max(), np.finfo(float).tiny)
    return (
        _close(given.matrix, turn @ straight)
        and _close(turn @ turn.T, np.eye(len(turn)))
        and bool((np.abs(turned - ordered) <= TOLERANCE * limit).all())
    )
