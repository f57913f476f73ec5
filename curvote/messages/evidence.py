"""Choice of a basis and of its size by volunteers' labelled curves.

A volunteer left out is judged by the rule that the others' label moment makes, once as
much noise is on the moment as the reports will leave: with u their unit vectors, H the
moment (K - 1, p) without record i, M the public second moment and c_y the code of a
class, the chance that i is taken for class k is Phi(-t_ik),

    t_ik = (c_y - c_k)' H A u_i / (|c_y - c_k| sqrt(noise) |A u_i|), A = 1/(M + ridge).

The mean over volunteers is what a candidate errs; it is averaged with what it would be
were t normal in each class, Phi(-mean/sqrt(1 + variance)), since fifty records alone do
not tell an error of 1 % from one of 3 %. The first of the candidates stays where no
other errs less by `CAUTION` standard errors of the difference. Without any number the
reports elect the larger class, and that is a candidate, too. Firsts and caution are
those that lost least on simulated laws and on pairs of phonemes that are not reported
(benchmarks/bench_basis.py, docs/choosing.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.curves import basis, fpca
from curvote.curves.direction import simplex_codes
from curvote.curves.encoding import rescale, volunteer_constants
from curvote.learning.directions import LEAST_SLOPES, public_moment
from curvote.messages.arms import make_directions

Array = NDArray[np.float64]
Places = NDArray[np.int64]

# Most numbers of a candidate; those that it leaves out are 0, and cost nothing.
WIDTH: Final = 12
# Of each basis; the first of all stays where the evidence is weak.
SIZES: Final = {
    "fourier": (11, 3, 5, 7, 9),
    "bspline": (4, 5, 6, 8, 10, 12),
    basis.FPCA: (12, 1, 2, 3, 4, 6, 8),
    "none": (0,),
}
# Another candidate must err less by so many standard errors of the difference.
CAUTION: Final = 1.0
# With more noise components come first: they keep what it hides least.
LOUD: Final = 0.008
# Of fewer records in a class no variance is believed.
FEWEST_NORMAL: Final = 4
LEAST_VOLUNTEERS: Final = 10


@dataclass(frozen=True)
class Choice:
    """A choice among bases and sizes, before any record is read.

    ``kind`` is ``auto``, or ``fpca`` for its sizes alone; records have ``width``
    numbers at most, rescaled by ``standard`` or ``tanh``, and ``n_classes`` classes.
    ``noise`` is the variance that reports leave in a number of the label moment.
    """

    kind: str
    width: int
    rescale: str
    noise: float
    n_classes: int = 2

    @property
    def candidates(self) -> list[tuple[str, int]]:
        """Names and sizes that are tried, the first being kept without evidence."""
        names = [*SIZES] if self.kind == basis.AUTO else [self.kind]
        if self.noise > LOUD:
            names.sort(key=lambda name: name != basis.FPCA)
        return [(name, d) for name in names for d in SIZES[name] if d <= self.width]

    def choose(
        self, curves: Array, places: Places, grid: Array
    ) -> tuple[str, basis.Projection]:
        """Return the name and the padded projection of the candidate that errs least.

        ``curves`` (n, T) are volunteers', ``places`` (n,) their classes. Curves that no
        candidate can tell apart are a UserError.
        """
        tried: list[tuple[str, basis.Projection, Array]] = []
        refusals = []
        for name, size in self.candidates:
            try:
                padded = self._pad(_projection(name, size, curves, grid))
                coefficients, common = padded.apply(curves), name == basis.FPCA
                errors = self.left_out_errors(coefficients, places, common)
            except UserError as error:  # too few volunteers or points for the size
                refusals.append(error)
            else:
                tried.append((f"{name} {size}" if size else name, padded, errors))
        if all(name == "none" for name, *_ in tried):
            raise refusals[0]

        excess = np.array([errors - tried[0][2] for *_, errors in tried])
        caution = CAUTION / np.sqrt(len(places))
        best = (excess.mean(axis=1) + caution * excess.std(axis=1)).argmin()
        name, padded, _ = tried[int(best)]
        return name, padded

    def _pad(self, projection: basis.Projection) -> basis.Projection:
        """Return a projection of all numbers, those beyond its size 0."""
        matrix = np.zeros((self.width, projection.matrix.shape[1]))
        matrix[: len(projection.matrix)] = projection.matrix
        named = projection.domain, self.kind, self.width, 1
        return basis.Projection(matrix, np.eye(self.width), *named)

    def constants(self, coefficients: Array, common: bool) -> tuple[Array, Array]:
        """Return centre and scale (width,) of volunteers' coefficients (n, width).

        Those that are left out have 0 and 1. A ``standard`` record is as long as one of
        all numbers, which the public constant beside z is made for.
        """
        used = coefficients.any(axis=0)
        centre, scale = np.zeros(self.width), np.ones(self.width)
        if used.any():
            common = common and self.rescale == "standard"
            pair = volunteer_constants(coefficients[:, used], common)
            centre[used], scale[used] = pair
        if self.rescale == "standard":
            scale[used] *= np.sqrt(used.mean())
        return centre, scale

    def left_out_errors(
        self, coefficients: Array, places: Places, common: bool = False
    ) -> Array:
        """Return values (n,) whose mean is the error of volunteers who are left out."""
        facts = self.width, self.rescale, "auto", self.n_classes
        directions = make_directions("mean", *facts)
        centre, scale = self.constants(coefficients, common)
        constants = {"centre": centre, "scale": scale}
        u = directions.units(rescale(self.rescale, coefficients, constants)[0])
        codes = simplex_codes(self.n_classes)
        targets, (n, p) = codes[places], u.shape
        total = targets.T @ u
        moments = (total - targets[:, :, None] * u[:, None, :]) / (n - 1)
        hidden = p * self.noise
        energy = float((total**2).sum()) / (n**2 * targets.shape[1]) - hidden - 1 / n
        ridge = self.noise / max(energy, LEAST_SLOPES * hidden)
        rules = u / (public_moment(directions) + ridge)
        scores = np.einsum("nkp,np->nk", moments, rules)
        spread = np.sqrt(self.noise) * np.linalg.norm(rules, axis=1)
        errors = np.zeros(n)
        for place, k in product(np.unique(places), range(self.n_classes)):
            if place != k:
                rows, between = places == place, codes[place] - codes[k]
                margins = scores[rows] @ between / np.linalg.norm(between)
                errors[rows] += _chances(margins / spread[rows])
        return errors


def _chances(t: Array) -> Array:
    """Return Phi(-t) (m,), averaged with pseudo-values of its mean for normal t.

    They are the jackknife's: their mean is that of all, less its bias.
    """
    from scipy.special import ndtr

    m, single = len(t), ndtr(-t)
    if m < FEWEST_NORMAL:
        return np.asarray(single)
    mean = (t.sum() - t) / (m - 1)
    variance = np.maximum(((t**2).sum() - t**2) / (m - 1) - mean**2, 0.0)
    every = ndtr(-t.mean() / np.sqrt(1 + t.var()))
    without = ndtr(-mean / np.sqrt(1 + variance))
    return np.asarray((single + m * every - (m - 1) * without) / 2)


def _projection(name: str, size: int, curves: Array, grid: Array) -> basis.Projection:
    if name == basis.FPCA:
        return fpca.principal_projection(curves, size, grid)
    if name in basis.BASES:
        return _named_projection(name, size, (*grid.tolist(),))
    return replace(basis.grid_projection(grid), matrix=np.zeros((0, len(grid))))


@lru_cache(maxsize=64)
def _named_projection(name: str, *size_and_grid: Any) -> basis.Projection:
    return basis.orthonormal(basis.projection(name, *size_and_grid))
