"""Weak classifiers: samples of reports and fits of many problems at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.learning.learners.registry import Fits, fit, parameters

IntArray = NDArray[np.int64]


def draw_subsets(
    generator: np.random.Generator, n_reports: int, count: int, size: int
) -> IntArray:
    """Return the reports of ``count`` learners, [count, size] indices.

    Each learner gets ``size`` different reports, independently of the others (MRMA,
    algorithm 1). More than there are is a UserError.
    """
    validate.at_least(1, count=count)
    if validate.at_least(1, size=size) > n_reports:
        raise UserError(
            f"size is {size}, but there are only {n_reports} reports to draw from."
        )
    # A shuffle, not the smallest of random keys: partitioning differs by processor.
    # One learner after the other, so that only one order is in memory.
    everyone = np.arange(n_reports)[None]
    subsets = [generator.permuted(everyone, axis=1)[0, :size] for _ in range(count)]
    return np.array(subsets)


def disjoint_parts(
    generator: np.random.Generator, n_reports: int, count: int
) -> list[IntArray]:
    """Return ``count`` disjoint random parts of the reports.

    The remainder is left out. More parts than reports are a UserError.
    """
    if validate.at_least(1, count=count) > n_reports:
        raise UserError(f"count is {count}, but there are only {n_reports} reports.")
    size = n_reports // count
    order = generator.permutation(n_reports)[: count * size]
    return list(order.reshape(count, size))


def fit_problems(
    name: str,
    problems: Sequence[tuple[FloatArray, FloatArray]],
    *,
    gram: FloatArray,
    roughness: FloatArray | None = None,
    **params: Any,
) -> Fits:
    """Fit learner ``name`` to problems (reports [n, d], labels [n]) of any sizes n.

    ``gram`` and ``roughness`` (d, d), of the basis and of its second derivatives, make
    reports functions, for the learners that see them so.
    Problems of one size are fitted in one batch; the results stand in the order given.
    No problem at all, or different d, is a UserError.
    """
    groups: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, (reports, _) in enumerate(problems):
        groups[np.shape(reports)].append(index)
    widths = {shape[-1:] for shape in groups}
    if len(widths) != 1:
        raise UserError(f"problems must share one d; found {sorted(widths)}.")
    public = {"gram": gram, "roughness": roughness}
    params |= {key: public[key] for key in public if key in parameters(name)}
    results = [
        _fit_batch(name, [problems[i] for i in g], params) for g in groups.values()
    ]
    order = np.argsort(np.concatenate(list(groups.values())))
    return Fits(
        np.concatenate([fits.coef for fits in results])[order],
        np.concatenate([fits.intercept for fits in results])[order],
        np.concatenate([fits.flagged for fits in results])[order],
        results[0].ridge,
    )


def _fit_batch(
    name: str, problems: list[tuple[FloatArray, FloatArray]], params: dict[str, Any]
) -> Fits:
    reports = np.stack([reports for reports, _ in problems])
    labels = np.stack([labels for _, labels in problems])
    return fit(name, reports, labels, **params)
