"""Agreement of each record under one deployment: the library's one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.entropy import Entropy
from curvote.utility.deployments.deployment import Deployment, Read, is_vector
from curvote.utility.deployments.scan import measured
from curvote.utility.engines.base import Draws, Evidence
from curvote.utility.known import Wanted, known
from curvote.utility.setting import setting
from curvote.validate import FloatArray


@dataclass(frozen=True)
class Agreement:
    """Agreement of each record with its clean answer, arrays (n,).

    ``lower <= agreement <= upper``; ``bound`` is the box bound, NaN where there is
    none; ``queries`` counts the model's answers.
    """

    agreement: FloatArray
    lower: FloatArray
    upper: FloatArray
    bound: FloatArray
    evidence: Evidence
    queries: NDArray[np.int64]


def quantify(
    model: Any,
    records: ArrayLike,
    *,
    sensitive: Sequence[int],
    bounds: ArrayLike,
    mechanism: str,
    epsilon: float,
    split: Sequence[float] | None = None,
    read: Read = "raw",
    evidence: Wanted = "auto",
    draws: int = 2000,
    confidence: float = 0.95,
    surrogate: Any = None,
    entropy: Entropy | None = None,
    public: ArrayLike | None = None,
    train: tuple[ArrayLike, ArrayLike] | None = None,
    **params: Any,
) -> Agreement:
    """Return how often each record's answer survives.

    ``sensitive`` are column numbers and ``bounds`` one (low, high) for each, in the
    model's units. ``epsilon`` is the record's total, ``split`` its shares (equal where
    not given). ``read`` may be ``decode`` with ``public`` records and ``retrain`` with
    ``train``, (X, y). ``params`` are the mechanism's own (``delta``, ``size``).
    UserError for anything that is no such thing.
    """
    asked = setting(
        model, records, sensitive=sensitive, bounds=bounds, public=public, train=train
    )
    s = len(asked.sensitive)
    shares = None if is_vector(mechanism) else (1 / s,) * s
    deployment = Deployment(
        mechanism,
        epsilon,
        shares if split is None else tuple(split),
        read,
        delta=float(params.pop("delta", 0.0)),
        params=params,
    )
    found = measured(
        asked,
        known(asked, evidence=evidence),
        deployment,
        Draws(draws, confidence, entropy),
    )
    bound = np.full(asked.n, np.nan) if found.bound is None else found.bound
    return Agreement(
        found.agreement, found.lower, found.upper, bound, found.evidence, found.queries
    )
