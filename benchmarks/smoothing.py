"""How near smoothed curves come to the truth, on simulated laws alone.

Run as ``python -m benchmarks.smoothing``: the error of the coefficients of noisy curves
at times of their own, in parts of the coefficients' size, for straight lines and for
penalties. `curvote.curves.smoothing.PENALTY` was taken from this table.
"""

from itertools import product
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from curvote.curves import smoothing
from curvote.curves.basis import projection
from curvote.data.tables.curves import Segments

Array = NDArray[np.float64]
GRID, FINE = np.linspace(0, 1, 49), np.linspace(0, 1, 1001)
BASES = [("fourier", 5), ("fourier", 11), ("bspline", 6)]
PENALTIES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
CURVES = 300


def waves(rng: np.random.Generator) -> Array:
    """Return sums of three waves."""
    parts = [
        rng.normal(size=(CURVES, 1)) / k * np.sin(2 * np.pi * k * FINE + phase)
        for k in (1, 2, 3)
        for phase in [rng.uniform(0, 2 * np.pi, (CURVES, 1))]
    ]
    return np.asarray(sum(parts))


def bumps(rng: np.random.Generator) -> Array:
    """Return bumps anywhere."""
    return np.exp(-(((FINE - rng.uniform(0.2, 0.8, (CURVES, 1))) / 0.15) ** 2) / 2)


def walks(rng: np.random.Generator) -> Array:
    """Return random walks."""
    return np.cumsum(rng.normal(size=(CURVES, len(FINE))), axis=1)


def main() -> None:
    """Print a row for each law, number of measurements and noise."""
    onto = [projection(name, size, GRID) for name, size in BASES]
    print("law, measurements, noise: lines", *PENALTIES, sep="  ")
    for law, m, noise in product((waves, bumps, walks), (6, 12, 40, 200), (0.2, 1.0)):
        rng = np.random.default_rng(1)
        truth = law(rng)
        truth /= truth.std()
        times = np.sort(rng.uniform(0, 1, (CURVES, m)), axis=1)
        rows = zip(times, truth, strict=True)
        values = np.array([np.interp(at, FINE, curve) for at, curve in rows])
        values += noise * rng.normal(size=values.shape)
        starts, y = m * np.arange(CURVES + 1), values.reshape(-1, 1)
        found = [Segments(starts, times.ravel(), y).interpolate(GRID)]
        for penalty in PENALTIES:
            with patch.object(smoothing, "PENALTY", penalty):
                found.append(smoothing.smooth(GRID, starts, times.ravel(), y))
        on_grid = np.array([np.interp(GRID, FINE, curve) for curve in truth])

        def error(curves: Array, on_grid: Array = on_grid) -> str:
            errors = []
            for each in onto:
                wanted = each.apply(on_grid)
                off = np.linalg.norm(each.apply(curves) - wanted, axis=1).mean()
                errors.append(off / np.linalg.norm(wanted, axis=1).mean())
            return "/".join(f"{e:.2f}" for e in errors)

        print(f"{law.__name__} {m:3} {noise}: ", *map(error, found), sep="  ")


if __name__ == "__main__":
    main()
