"""The paper's adaptive rules: bandwidth and weights for each query, from noised values.

Paper 002, section 5. T_j(x) here is h^d times the paper's, so that a kernel is 1 at 0;
every ratio is the same. Its variance has the printed sampling part, c_K g_max h^d /
(3 n_j) with c_K = g_max = 1, and the noise that was really added. In (22) and line 8
of algorithm 1 the paper prints T and w_0 where the noised T and the best weights are
meant: what is not noised never enters here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.errors import UserError
from curvote.transfer.bandwidths import effective
from curvote.transfer.forms import form
from curvote.transfer.forms.kernel import Kernel
from curvote.transfer.release import Release
from curvote.transfer.task import Task

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the servers' noised releases say of q queries, at each bandwidth.

    ``told`` (J, |H|, q) are T_j(x), ``noise`` (J,) the variance that was added to each,
    ``n`` (J,) records, ``epsilon`` (J,) what a server spent, ``alone`` (J,) the epsilon
    that one bandwidth would have cost at that noise, ``widths`` (|H|,) falling, in the
    units of ``volume`` h^d, and ``target`` the place of the target.
    """

    told: Array
    noise: Array
    n: Array
    epsilon: Array
    alone: Array
    widths: Array
    d: int
    target: int

    @property
    def variance(self) -> Array:
        """The variance of T_j at each bandwidth, (J, |H|): (18), (21)."""
        return self.volume / (3 * self.n[:, np.newaxis]) + self.noise[:, np.newaxis]

    @property
    def volume(self) -> Array:
        """h^d at each bandwidth."""
        return self.widths**self.d

    @property
    def precision(self) -> Array:
        """u_j(h) of (17), (J, |H|)."""
        n, spent = self.n[:, np.newaxis], self.alone[:, np.newaxis]
        return np.minimum(n, (n * spent) ** 2 * self.volume)

    def threshold(self, constant: float) -> float:
        """Return C ln(2 n* |H|)."""
        star = effective(self.n, self.epsilon)
        return constant * math.log(2 * star * len(self.widths))


def evidence(
    task: Task, releases: Sequence[Release], target: str, cube: Array
) -> Evidence:
    """Read releases of form `kernel` at queries (q, d) in [0, 1]^d.

    A target that released nothing is a UserError.
    """
    names, kernel = [each.server for each in releases], form(task.release)
    validate.one_of(names, target=target)
    if not isinstance(kernel, Kernel):
        raise UserError(f"release {task.release} has no bandwidths to choose from.")
    n = np.array([each.n for each in releases], dtype=float)
    rows = np.concatenate([kernel.weights(task, 1.0 * it.values) for it in releases])
    told = kernel.products(task, cube, rows / n[:, np.newaxis])
    spent = np.array([each.budget.epsilon for each in releases])
    sigma = np.array([each.sigma for each in releases]) / kernel.unit(task)
    widths = np.asarray(task.params["bandwidths"])
    return Evidence(
        *(np.moveaxis(told, 2, 0), (sigma / n) ** 2, n, spent),
        *(spent / kernel.parts(task), widths, task.d, names.index(target)),
    )


def over_simplex(told: Array, variance: Array) -> Array:
    """Return T(w*)/sqrt(v(w*)) for the best w of the simplex: told (J, ...) -> (...).

    max (w.t)^2 / sum w_j^2 v_j is the larger of sum (t_j)+^2/v_j and sum (t_j)-^2/v_j,
    with w_j proportional to that side's |t_j|/v_j.
    """
    for_ill = (np.maximum(told, 0) ** 2 / variance).sum(axis=0)
    against = (np.minimum(told, 0) ** 2 / variance).sum(axis=0)
    return np.where(for_ill > against, np.sqrt(for_ill), -np.sqrt(against))


def weighted(told: Array, variance: Array, w: Array) -> Array:
    """Return T(w)/sqrt(v(w)) for stated weights (J, ...)."""
    return np.asarray((w * told).sum(axis=0) / np.sqrt((w**2 * variance).sum(axis=0)))


def lepski(ratios: Array, threshold: float) -> Array:
    """Return the ratio at the chosen bandwidth, ratios (|H|, q) -> (q,).

    Bandwidths fall; chosen is the least whose square exceeds the threshold, else the
    largest square.
    """
    squared = ratios**2
    clear = squared > threshold
    least = len(ratios) - 1 - clear[::-1].argmax(axis=0)
    chosen = np.where(clear.any(axis=0), least, squared.argmax(axis=0))
    return np.asarray(np.take_along_axis(ratios, chosen[np.newaxis], axis=0)[0])


def _columns(told: Evidence) -> tuple[Array, Array]:
    return told.told, told.variance[:, :, np.newaxis]


def adapt_homog(told: Evidence) -> Array:
    """Return algorithm 1's score for each query: sources weigh by precision, (17)."""
    t, v = _columns(told)
    sources = np.arange(len(t)) != told.target
    if not sources.any():
        return adapt_tar(told)
    u = told.precision[sources][:, :, np.newaxis]
    u = u / u.sum(axis=0)
    pooled = (u * t[sources]).sum(axis=0), (u**2 * v[sources]).sum(axis=0)
    pair = np.stack([t[told.target], pooled[0]]), np.stack([v[told.target], pooled[1]])
    return lepski(over_simplex(*pair), told.threshold(4.5))


def adapt_all(told: Evidence) -> Array:
    """Return algorithm 2's score for each query: weights over the whole simplex."""
    return lepski(over_simplex(*_columns(told)), told.threshold(2.25 * len(told.n)))


def stated(told: Evidence, w: ArrayLike) -> Array:
    """Return the score with stated weights (J,) or (J, |H|): remark 5.1."""
    weights = np.asarray(w, dtype=float).reshape(len(told.n), -1, 1)
    ratios = weighted(*_columns(told), weights)
    return lepski(ratios, told.threshold(2.25 * len(told.n)))


def adapt_tar(told: Evidence) -> Array:
    """Return the score of the target's release alone."""
    return stated(told, np.arange(len(told.n)) == told.target)


def adapt_samp(told: Evidence) -> Array:
    """Return the score with weights by size."""
    return stated(told, told.n)


def known(told: Evidence, gamma: ArrayLike, beta: float, width: float) -> Array:
    """Return the score with the weights of (12), at the bandwidth nearest ``width``.

    ``gamma`` (J,) are the transfer exponents, the target's is 1; ``width`` solves (11)
    (`rates.radius` with delta).
    """
    at = int(np.abs(np.log(told.widths / width)).argmin())
    v = told.precision[:, at] * told.widths[at] ** (beta * np.asarray(gamma))
    one = told.told[:, at], told.variance[:, at, np.newaxis], v[:, np.newaxis]
    return weighted(*one)


METHODS: dict[str, Callable[[Evidence], Array]] = {
    "adapt_all": adapt_all,
    "adapt_tar": adapt_tar,
    "adapt_samp": adapt_samp,
    "adapt_homog": adapt_homog,
}
