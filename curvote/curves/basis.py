"""Public bases of curves, and the matrices that project curves onto them.

Clients check a task's matrices with bases recomputed with NumPy: a matrix that a task
brings along is a name for a basis, nothing else. A client compares it with its own and
refuses whatever it cannot derive from name, size, order, domain and number of grid
points. So nobody's curve is multiplied by a matrix of the server's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError

Array = NDArray[np.float64]

STEP_TOLERANCE = 1e-3


def check_grid(grid: ArrayLike) -> Array:
    """Return grid points (T,); a grid that is not equidistant: UserError."""
    points = np.atleast_1d(validate.finite(grid=grid))
    if points.ndim != 1 or len(points) < 2:
        raise UserError(
            f"grid has shape {points.shape}; it must be a list of at least 2 points."
        )
    steps = np.diff(points)
    if (steps <= 0).any():
        place = _describe_place(points, steps <= 0)
        raise UserError(f"grid must be strictly increasing, but {place}")
    usual = np.median(steps)
    rounding = 4 * np.spacing(np.abs(points).max())
    odd = ~np.isclose(steps, usual, rtol=STEP_TOLERANCE, atol=rounding)
    if odd.any():
        rule = f"equidistant (its usual step is {usual:.6g})"
        raise UserError(f"grid must be {rule}, but {_describe_place(points, odd)}")
    return points


def _describe_place(points: Array, wrong: NDArray[np.bool_]) -> str:
    i = int(np.flatnonzero(wrong)[0])
    return f"point {i} is {points[i]:.10g} and point {i + 1} is {points[i + 1]:.10g}."


COSINES = "cosines"


def image_side(points: int) -> int:
    """Return the side of a square image of so many pixels."""
    side = isqrt(points)
    if side < 1 or side * side != points:
        raise UserError(
            f"a record has {points} values, which make no square; the basis {COSINES}"
            " takes grey images as high as wide.",
            where=("project", "basis"),
        )
    return side


def lowest_frequencies(points: int, size: int) -> NDArray[np.int64]:
    """Return the lowest frequencies (down, across), (size, 2).

    The first is (0, 0), the mean. Equal sums begin with the most alike. More than
    pixels, or pixels that make no square, are a UserError.
    """
    side = image_side(points)
    if size > points:
        message = f"size is {size}, but an image has only {points} pixels."
        raise UserError(message, where=("project", "size"))
    down, across = np.divmod(np.arange(points), side)
    order = np.lexsort((down, np.abs(down - across), down + across))[:size]
    return np.column_stack([down[order], across[order]])


Domain = tuple[float, float]

CLEAR_PRODUCT = 1e-6
# FITPACK, which integrates splines for scikit-fda, crashes the process beyond.
MAX_SPLINE_ORDER = 6
MAX_DERIVATIVE = 2


@dataclass(frozen=True, eq=False)
class Projection:
    """The least-squares projection of curves on T grid points onto d basis functions.

    ``matrix`` is (d, T); ``gram`` (d, d) holds the L2 inner products of the functions
    over ``domain``. Of a ``derivative`` the d functions are those of which that of the
    ``size`` functions consists. Several ``channels``, by name, follow each other in
    both sizes of the matrix: each has the same block.
    """

    matrix: Array = field(repr=False)
    gram: Array = field(repr=False)
    domain: Domain
    name: str
    size: int
    order: int
    derivative: int = 0
    channels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # One memory layout, so that a projection read from JSON gives the same bits.
        object.__setattr__(self, "matrix", np.ascontiguousarray(self.matrix))

    @property
    def grid(self) -> Array | None:
        """The grid points of one channel; None of vectors and images."""
        if self.name in (IDENTITY, COSINES):
            return None
        points = self.matrix.shape[1] // max(1, len(self.channels))
        return np.linspace(*self.domain, points)

    @property
    def single(self) -> Projection:
        """The projection of one of the channels."""
        (d, points), n = self.matrix.shape, max(1, len(self.channels))
        matrix = self.matrix[: d // n, : points // n]
        gram = self.gram[: d // n, : d // n]
        return replace(self, matrix=matrix, gram=gram, channels=())

    def stacked(self, channels: Sequence[str]) -> Projection:
        """Return the projection of several channels, one block for each."""
        if not channels:
            return self
        (d, points), n = self.matrix.shape, len(channels)
        matrix, gram, k = np.zeros((n, d, n, points)), np.zeros((n, d, n, d)), range(n)
        matrix[k, :, k], gram[k, :, k] = self.matrix, self.gram
        blocks = matrix.reshape(n * d, -1), gram.reshape(n * d, -1)
        return replace(self, matrix=blocks[0], gram=blocks[1], channels=(*channels,))

    def apply(self, curves: ArrayLike) -> Array:
        """Return the coefficients (n, d) of ``curves`` (n, T).

        Another shape, NaN or infinity is a UserError; curves and grid points are
        counted from 0.
        """
        values = np.asarray(curves, dtype=np.float64)
        points = self.matrix.shape[1]
        if values.ndim != 2 or values.shape[1] != points:
            raise UserError(
                f"curves have shape {values.shape}; they must be (n, {points}), one row"
                " a curve and one column a grid point."
            )
        bad = ~np.isfinite(values)
        if bad.any():
            rows = np.flatnonzero(bad.any(axis=1))
            row, further = int(rows[0]), len(rows) - 1
            count, first = int(bad[row].sum()), int(np.flatnonzero(bad[row])[0])
            kind = "missing" if np.isnan(values[row, first]) else "infinite"
            more = f" ({further} more such curves)" if further else ""
            raise UserError(
                f"curve {row} has {count} {kind} value{'s' * (count > 1)}, the first at"
                f" grid point {first}{more}; every value must be finite."
            )
        return np.asarray(values @ self.matrix.T)


def projection(
    basis: str,
    size: int,
    grid: ArrayLike,
    order: int = 4,
    called: str = "size",
    *,
    derivative: int = 0,
) -> Projection:
    """Return the projection of curves on ``grid`` onto ``size`` functions of ``basis``.

    ``grid`` (T,) is increasing and equidistant, and its ends are the domain. ``order``
    is that of the B-splines (4 = cubic, equidistant knots); Fourier ignores it. With a
    ``derivative`` above 0 the coefficients are those of the projected curve's. Errors
    name the size as it is ``called`` where it was given.
    """
    points = check_grid(grid)
    check_size(basis, size, order, len(points), size_name=called, derivative=derivative)
    domain = (float(points[0]), float(points[-1]))
    from skfda import FDataGrid

    impulses = FDataGrid(np.eye(len(points)), grid_points=points)
    coefficients = impulses.to_basis(BASES[basis](domain, size, order)).coefficients
    matrix = np.asarray(coefficients.T, dtype=np.float64)
    onto = Projection(matrix, np.eye(size), domain, basis, size, order, derivative)
    if derivative:
        matrix = derivative_matrix(onto) @ matrix
    return replace(onto, matrix=matrix, gram=_products(onto))


def coefficient_count(basis: str, size: int, derivative: int, channels: int = 1) -> int:
    """Return how many coefficients a curve has, or a derivative of it.

    A derivative takes a degree from a spline, and from a Fourier series its constant.
    Each channel has so many, but principal components are those of all.
    """
    lost = derivative if basis == "bspline" else min(derivative, 1)
    return (size - lost) * (1 if basis == FPCA else channels)


def derivative_matrix(basis: Projection) -> Array:
    """Return the matrix (d, size) from coefficients to those of the derivative."""
    matrix, size, (start, end) = np.eye(basis.size), basis.size, basis.domain
    if basis.name == "fourier":
        # (a sin + b cos)(k t)' = k (a cos - b sin)(k t)
        step = np.zeros((size, size))
        speeds = 2 * np.pi / (end - start) * (1 + np.arange(size // 2))
        odd = 1 + 2 * np.arange(size // 2)
        step[odd, odd + 1], step[odd + 1, odd] = -speeds, speeds
        return np.linalg.matrix_power(step, basis.derivative)[1:]
    for order in range(basis.order, basis.order - basis.derivative, -1):
        # c'_i = (k - 1) (c_{i+1} - c_i) / w_i, as of `bspline_slopes`.
        knots = np.linspace(start, end, basis.size - basis.order + 2)
        full = _full_knots(knots, order)
        widths = full[order:-1] - full[1:-order]
        differences = np.diff(np.eye(len(matrix)), axis=0)
        matrix = (order - 1) * differences / widths[:, None] @ matrix
    return matrix


def identity(d: int) -> Projection:
    """Return the projection that leaves vectors of ``d`` features unchanged."""
    d = validate.at_least(1, d=d)
    return Projection(np.eye(d), np.eye(d), (1.0, float(d)), IDENTITY, d, 1)


def grid_projection(grid: ArrayLike) -> Projection:
    """Return the projection that leaves curves on ``grid`` (T,) unchanged.

    The Gram matrix holds the weights of the trapezoid rule, so that inner products are
    those of the curves.
    """
    points = check_grid(grid)
    count, domain = len(points), (float(points[0]), float(points[-1]))
    return Projection(np.eye(count), _trapezoid_gram(points), domain, VALUES, count, 1)


def _trapezoid_gram(grid: Array) -> Array:
    """Return the weights of the trapezoid rule on equidistant points, (T, T)."""
    weights = np.full(len(grid), (grid[-1] - grid[0]) / (len(grid) - 1))
    weights[[0, -1]] /= 2
    return np.diag(weights)


def image_projection(points: int, size: int) -> Projection:
    """Return the projection of square images onto 2-D cosines.

    They are orthonormal: the Gram matrix of sums over pixels is 1. Pixels that make no
    square, or fewer than ``size``, are a UserError.
    """
    from scipy.fft import dct  # no client needs it

    size = validate.at_least(1, size=size)
    down, across = lowest_frequencies(points, size).T
    waves = dct(np.eye(image_side(points)), norm="ortho", axis=0)
    matrix = np.asarray((waves[down, :, None] * waves[across, None]).reshape(size, -1))
    return Projection(matrix, np.eye(size), (1.0, float(points)), COSINES, size, 1)


def roughness_matrix(basis: Projection) -> Array:
    """Return R (d, d), the integrals of phi_i'' phi_j''.

    For curves given by their values second differences stand in, for feature vectors
    and principal components their size: R = 1, and of images the Laplacian counts. In
    the coordinates of ``basis``, whichever they are.
    """
    if basis.name in (IDENTITY, *VOLUNTEERS_BASES):
        return np.eye(basis.size)
    if basis.name == VALUES:
        step = (basis.domain[1] - basis.domain[0]) / (basis.size - 1)
        differences = np.diff(np.eye(basis.size), n=2, axis=0) / step**2
        return np.asarray(differences.T @ differences * step)
    if basis.name == COSINES:
        # A cosine of (i, j) is its own Laplacian but for - (pi/side)^2 (i^2 + j^2).
        points = basis.matrix.shape[1]
        waves = (lowest_frequencies(points, basis.size) ** 2).sum(axis=1)
        return np.diag(((np.pi / image_side(points)) ** 2 * waves) ** 2)
    if basis.channels:
        block = roughness_matrix(basis.single)
        return np.asarray(np.kron(np.eye(len(basis.channels)), block))
    integrals, gram = _products(basis, 2), _products(basis)
    if np.allclose(basis.gram, gram, rtol=1e-9, atol=0):
        return integrals
    vectors = _smooth_coordinates(basis)
    return np.asarray(vectors.T @ integrals @ vectors)


def orthonormal(basis: Projection) -> Projection:
    """Return the same space in L2-orthonormal coordinates, smoothest first.

    The functions solve the eigenproblem of their roughness, integral phi_i' phi_j',
    relative to the Gram matrix. The new Gram matrix is the identity, so Euclidean
    products of coefficients are L2 products of curves.
    """
    if basis.name not in BASES:
        raise UserError("coordinates: orthonormal needs a basis of functions.")
    if not np.allclose(basis.gram, _products(basis), rtol=1e-9, atol=0):
        return basis  # already orthonormal
    vectors = _smooth_coordinates(basis)
    matrix = vectors.T @ basis.gram @ basis.matrix
    return replace(basis, matrix=matrix, gram=np.eye(len(matrix)))


def check_size(
    basis: str,
    size: int,
    order: int = 4,
    points: int | None = None,
    *,
    size_name: str = "size",
    derivative: int = 0,
) -> None:
    """Refuse (UserError) a size that ``basis`` does not have."""
    validate.one_of((*BASES, COSINES, FPCA), basis=basis)
    validate.at_least(1, **{size_name: size})
    validate.at_least(1, order=order)
    if basis == "fourier" and size % 2 == 0:
        odd = f"{size - 1} or {size + 1}"
        raise UserError(f"{size_name}: Fourier sizes are odd: {odd}, not {size}.")
    if basis == "bspline" and size < order:
        raise UserError(
            f"{size_name} is {size}; B-splines of order {order} need a size of at least"
            f" {order}."
        )
    if basis == "bspline" and order > MAX_SPLINE_ORDER:
        raise UserError(f"order is {order}; B-splines have at most {MAX_SPLINE_ORDER}.")
    most = {"bspline": max(0, order - 2), "fourier": MAX_DERIVATIVE * (size > 1)}
    most_derivative = min(MAX_DERIVATIVE, most.get(basis, 0))
    if validate.at_least(0, derivative=derivative) > most_derivative:
        raise UserError(
            f"derivative is {derivative}; of {basis}, {size_name} {size} and order"
            f" {order}, it is at most {most_derivative}."
        )
    if points is not None:
        if size > points:
            raise UserError(
                f"{size_name} is {size}, but a curve has only {points} grid points."
            )
        if basis == "fourier" and size > points - 1:
            raise UserError(
                f"{size_name} is {size}; a Fourier basis takes the two ends of the grid"
                f" for one point, so {points} grid points allow at most {points - 1}"
                " functions."
            )


def _bspline_basis(domain: Domain, size: int, order: int) -> Any:
    from skfda.representation.basis import BSplineBasis

    return BSplineBasis(domain_range=domain, n_basis=size, order=order)


def _fourier_basis(domain: Domain, size: int, _order: int) -> Any:
    from skfda.representation.basis import FourierBasis

    return FourierBasis(domain_range=domain, n_basis=size)


# Not a basis of functions: feature vectors are their own coefficients.
IDENTITY = "identity"
# Nor this: curves are given by their values on the grid.
VALUES = "values"
# Principal components of public curves: no name tells their matrix.
FPCA = "fpca"
# Of these bases the one that volunteers' labelled curves choose.
AUTO = "auto"
# Their matrix is made of volunteers' curves.
VOLUNTEERS_BASES = (FPCA, AUTO)

BASES: dict[str, Callable[[Domain, int, int], Any]] = {
    "bspline": _bspline_basis,
    "fourier": _fourier_basis,
}


def _products(basis: Projection, slopes: int = 0) -> Array:
    """Return the L2 products of the functions of ``basis``, or of their slopes'."""
    from skfda.misc.operators import LinearDifferentialOperator, gram_matrix

    # A derivative of splines is one of a lower order; a wave stays, but the constant.
    lower = basis.derivative if basis.name == "bspline" else 0
    size, order = basis.size - lower, basis.order - lower
    functions = BASES[basis.name](basis.domain, size, order)
    products = functions.gram_matrix()
    if slopes:
        products = gram_matrix(LinearDifferentialOperator(slopes), functions)
    begin = int(basis.derivative > lower)
    return np.asarray(products, dtype=np.float64)[begin:, begin:]


def _smooth_coordinates(basis: Projection) -> Array:
    """Return the L2-orthonormal functions, smoothest first, (d, d)."""
    from scipy.linalg import eigh

    gram = _products(basis)
    _, vectors = eigh(_products(basis, 1), gram)  # ascending
    products = gram @ vectors
    clear = np.abs(products) > CLEAR_PRODUCT * np.abs(products).max(axis=0)
    first = products[clear.argmax(axis=0), np.arange(len(gram))]
    return np.asarray(vectors * np.sign(first))


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
    identity. Of several channels each has that matrix, and nothing of another.
    """
    if projection.channels:
        single, n = projection.single, len(projection.channels)
        again = single.stacked(projection.channels)
        # Of shapes that are no multiples of the channels, too.
        same = np.array_equal(again.matrix, projection.matrix)
        if not (same and np.array_equal(again.gram, projection.gram)) or n < 2:
            raise UserError(
                f"the task's matrix is not that of {n} channels, each by itself: a"
                " client multiplies its curve by no other."
            )
        check_projection(single)
        return
    (d, points), (start, end) = projection.matrix.shape, projection.domain
    size, order = projection.size, projection.order
    conditions = {
        "identity": points == size and order == 1 and (start, end) == (1.0, size),
        "values": points == size > 1 and order == 1,
        "cosines": size <= points and order == 1 and (start, end) == (1.0, points),
        "fourier": size % 2 == 1 and size < points,
        "bspline": order <= min(size, MAX_SPLINE_ORDER) and size <= points,
    }
    if projection.name in VOLUNTEERS_BASES:
        raise UserError(
            "the task's matrix is made of others' curves, and no name tells it; a"
            " client multiplies its curve by no matrix that it cannot make itself."
        )
    name = validate.one_of(conditions, basis=projection.name)
    exists = conditions[name]
    if exists and projection.derivative:
        check_size(name, size, order, points, derivative=projection.derivative)
    exists = exists and d == coefficient_count(name, size, projection.derivative)
    if not exists or (start >= end and name not in ("identity", "cosines")):
        raise UserError(
            f"there is no basis {name} of size {size} and order {order} on {points}"
            f" points from {start:g} to {end:g} with {d} coefficients."
        )
    expected = basis_matrices(projection, points)
    same = _is_close(projection.gram, expected.gram)
    same = same and _is_close(projection.matrix, expected.matrix)
    if not same and not _is_orthonormal_form(projection, expected):
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
        return BasisMatrices(np.eye(points), _trapezoid_gram(grid))
    products: tuple[Array, ...] = (np.eye(size - min(projection.derivative, 1)),)
    if name == "fourier":
        values = fourier_functions(grid, size)
    else:
        knots = np.linspace(*projection.domain, size - order + 2)
        values = bspline_functions(grid, knots, order)
        products = spline_products(knots, order - projection.derivative)
    matrix = _least_squares_matrix(values)
    if projection.derivative:
        matrix = derivative_matrix(projection) @ matrix
    return BasisMatrices(matrix, *products)


def spline_products(knots: Array, order: int) -> tuple[Array, Array]:
    """Return the L2 products of the B-splines of ``order``, and of their slopes."""
    # Nodes and weights that integrate spline products exactly.
    unit_nodes, unit_weights = np.polynomial.legendre.leggauss(order)
    half = np.diff(knots)[:, None] / 2
    middle = (knots[:-1] + knots[1:])[:, None] / 2
    nodes, weights = (middle + half * unit_nodes).ravel(), (half * unit_weights).ravel()
    inside = bspline_functions(nodes, knots, order)
    slopes = bspline_slopes(nodes, knots, order)
    return (inside * weights) @ inside.T, (slopes * weights) @ slopes.T


def cosine_waves(points: int, size: int) -> Array:
    """Return the lowest orthonormal cosines of a square of pixels, (size, points).

    s_i cos(pi i (x + 1/2) / side) down times the same across, s_0 = 1/sqrt(side) and
    sqrt(2/side) else.
    """
    side = image_side(points)
    pixels = (np.arange(side) + 0.5) * (np.pi / side)
    waves = np.cos(np.outer(np.arange(side), pixels)) * np.sqrt(2 / side)
    waves[0] /= np.sqrt(2)
    lowest = lowest_frequencies(points, size)
    return np.array([np.outer(waves[i], waves[j]).ravel() for i, j in lowest])


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


def _full_knots(knots: Array, order: int) -> Array:
    """Return the knots with each end as often as splines of ``order`` have it."""
    return np.concatenate([[knots[0]] * (order - 1), knots, [knots[-1]] * (order - 1)])


def bspline_functions(points: Array, knots: Array, order: int) -> Array:
    """Return the B-splines of ``order`` on ``knots``, (functions, T)."""
    places, local = local_bsplines(points, knots, order)
    values = np.zeros((len(knots) + order - 2, len(points)))
    values[places, np.arange(len(points))] = local
    return values


def local_bsplines(
    points: Array, knots: Array, order: int
) -> tuple[NDArray[np.int64], Array]:
    """Return which B-splines are not 0 at points, and their values, (order, T) both.

    By the recursion of Cox and de Boor (de Boor 1978, chapter X), one degree after the
    other: on an interval only ``order`` functions are not 0.
    """
    intervals = np.searchsorted(knots, points, side="right") - 1
    first = np.clip(intervals, 0, len(knots) - 2)
    full = _full_knots(knots, order)
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
    return first + np.arange(order)[:, None], local


def bspline_slopes(points: Array, knots: Array, order: int) -> Array:
    """Return the first derivatives of the B-splines."""
    if order == 1:
        return np.zeros((len(knots) - 1, len(points)))
    # With full knots t: N'_{i,k} = (k - 1) (N_{i,k-1}/w_i - N_{i+1,k-1}/w_{i+1}).
    full = _full_knots(knots, order)
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


def _is_orthonormal_form(actual: Projection, expected: BasisMatrices) -> bool:
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
