"""Principal components of public curves, by scikit-fda's FPCA, as a projection.

Their matrix follows from no name. It is public because the curves are, which volunteers
or a public sample gave: nobody else's curve may come here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.curves import basis

Array = NDArray[np.float64]

# Of the first: a component with less of the variance is rounding.
LEAST_VARIANCE = 1e-12


def principal_projection(
    curves: ArrayLike,
    size: int,
    grid: ArrayLike,
    called: str = "size",
    *,
    channels: tuple[str, ...] = (),
) -> basis.Projection:
    """Return the projection onto the first ``size`` components of public curves (n, T).

    Of several ``channels``, one behind the other, they are joint components, in which
    each counts in its unit. Components are orthonormal in L2 by the trapezoid rule,
    those of most variance first. Fewer than ``size`` + 1 curves, or curves that vary in
    fewer directions, are a UserError; it names the size as it is ``called``.
    """
    points, values = basis.check_grid(grid), validate.finite(public_curves=curves)
    size = validate.at_least(1, **{called: size})
    count = len(points) * max(1, len(channels))
    if values.ndim != 2 or values.shape[1] != count:
        raise UserError(
            f"the public curves have shape {values.shape}; they must be"
            f" (n, {count}), one row a curve and one column a grid point."
        )
    basis.check_size(basis.FPCA, size, points=count, size_name=called)
    if len(values) <= size:
        raise UserError(
            f"{len(values)} public curves have at most {max(len(values) - 1, 0)}"
            f" principal components, and {called} is {size}; take fewer components or"
            " more volunteers."
        )
    from skfda import FDataGrid
    from skfda.preprocessing.dim_reduction import FPCA

    domain = float(points[0]), float(points[-1])
    weights = np.diag(basis.grid_projection(points).stacked(channels).gram)
    # All components are asked for, since for few scikit-learn may draw at random.
    every: Any = FPCA(n_components=min(values.shape), _weights=weights)
    with np.errstate(invalid="ignore"):  # shares of no variance at all
        every.fit(FDataGrid(values, np.arange(count) if channels else points))
    variances = every.explained_variance_
    if not variances[size - 1] > LEAST_VARIANCE * (values**2).mean(axis=0) @ weights:
        count = int((variances > LEAST_VARIANCE * variances[0]).sum())
        raise UserError(
            f"the {len(values)} public curves vary in fewer than {size} directions"
            f" ({count}); take fewer components, or curves that differ."
        )
    components = every.components_.data_matrix[:size, :, 0]
    named = domain, basis.FPCA, size, 1, 0, channels
    return basis.Projection(components * weights, np.eye(size), *named)


def stand_in(
    grid: ArrayLike, size: int, name: str, channels: tuple[str, ...] = ()
) -> basis.Projection:
    """Return a projection of a ``name`` and size before any curve is known.

    It picks out single values, the worst that a matrix can do.
    """
    plain = basis.grid_projection(grid).stacked(channels)
    matrix, named = np.sqrt(plain.gram)[:size], (name, size, 1, 0, channels)
    return basis.Projection(matrix, np.eye(size), plain.domain, *named)
