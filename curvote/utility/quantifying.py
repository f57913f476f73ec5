"""Agreement of each record under one deployment: the library's one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote import validate
from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.utility.deployments.deployment import (
    Deployment,
    Read,
    channel,
    checked,
    equal,
)
from curvote.utility.deployments.scan import measured
from curvote.utility.engines.base import Draws, Evidence
from curvote.utility.engines.black_box import BlackBox, Drawn
from curvote.utility.known import Known, Wanted, known
from curvote.utility.setting import Setting, setting
from curvote.utility.surrogates import Surrogate
from curvote.validate import FloatArray


@dataclass(frozen=True, repr=False)
class Agreement:
    """Agreement of each record with its clean answer.

    Parameters
    ----------
    agreement, lower, upper : arrays (n,)
        ``lower <= agreement <= upper``.
    bound : array (n,)
        The box bound, NaN where there is none.
    evidence : "exact", "bracket" or "draws"
        What kind of answer this is.
    queries : array (n,)
        Counts the model's answers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from curvote.utility import quantify
    >>> X, y = np.array([[0.1], [0.2], [0.8], [0.9]]), [0, 0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> asked = {"mechanism": "pm_01", "epsilon": 2.0, "bounds": [(0, 1)]}
    >>> found = quantify(model, X, sensitive=[0], **asked)
    >>> print(found.evidence, bool((found.lower <= found.agreement).all()))
    exact True
    """

    agreement: FloatArray
    lower: FloatArray
    upper: FloatArray
    bound: FloatArray
    evidence: Evidence
    queries: NDArray[np.int64]

    def __repr__(self) -> str:
        """Return the mean, the worst record, how many there are, and the evidence."""
        each = self.agreement
        return (
            f"Agreement(mean={each.mean():.3f}, worst={each.min():.3f},"
            f" records={len(each)}, evidence={self.evidence!r})"
        )


def quantify(
    model: Any,
    records: ArrayLike,
    *,
    sensitive: Sequence[int | str],
    bounds: ArrayLike,
    mechanism: str,
    epsilon: float,
    split: Sequence[float] | None = None,
    read: Read = "raw",
    evidence: Wanted = "auto",
    draws: int = 2000,
    confidence: float = 0.95,
    surrogate: Surrogate | None = None,
    entropy: Entropy | None = None,
    public: ArrayLike | None = None,
    train: tuple[ArrayLike, ArrayLike] | None = None,
    **params: Any,
) -> Agreement:
    """Return how often each record's answer survives the noise.

    Noise and agreement of clean records are a study's: where clients' own records
    stand, their figures must not decide what they send. UserError for whatever does not
    fit.

    Parameters
    ----------
    model : object
        A fitted classifier, or a function that answers.
    records : array (n, D)
        In the model's units.
    sensitive : sequence of int or str
        The columns that are noised, s of them, by place or by the model's names.
    bounds : array (s, 2)
        One (low, high) for each, public, in the model's units.
    mechanism : str
        What noises them: a name of `curvote.mechanisms.names`.
    epsilon : float
        The record's total budget.
    split : sequence of float or None, default=None
        Its shares by column, equal where not given.
    read : "raw", "decode" or "retrain", default="raw"
        How the model takes noised records; ``decode`` takes ``public`` records,
        ``retrain`` takes ``train``.
    evidence : "auto", "exact", "bracket" or "draws", default="auto"
        What kind of answer will do.
    draws : int, default=2000
        For each record, where agreement can only be drawn.
    confidence : float in (0, 1), default=0.95
        Of intervals that are drawn.
    surrogate : Surrogate or None, default=None
        The model is asked as a black box, and the part of these trees is exact.
    entropy : Entropy or None, default=None
        Where draws come from.
    public : array (m, D) or None, default=None
        Public records.
    train : (X, y) or None, default=None
        What the model learns from again.
    **params
        The mechanism's own (``delta``, ``size``).

    Returns
    -------
    Agreement
        Of each record, with lower and upper ends.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.1], [0.2], [0.8], [0.9]]), [0, 0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> asked = {"mechanism": "pm_01", "epsilon": 2.0, "bounds": [(0, 1)]}
    >>> found = quantify(model, [[0.1], [0.45]], sensitive=[0], **asked)
    >>> print(found.agreement.round(2))
    [0.82 0.62]
    """
    asked = setting(
        model, records, sensitive=sensitive, bounds=bounds, public=public, train=train
    )
    given = {key: value for key, value in params.items() if key != "delta"}
    deployment = Deployment(
        mechanism,
        epsilon,
        equal(mechanism, len(asked.sensitive)) if split is None else tuple(split),
        read,
        float(params.get("delta", 0.0)),
        given,
    )
    # Before anything is asked of the model.
    channel(asked, checked(deployment, asked))
    how = Draws(
        validate.at_least(1, draws=draws),
        validate.fraction(confidence=confidence),
        entropy,
    )
    found = measured(asked, _known(asked, evidence, surrogate), deployment, how)
    if evidence in {"exact", "bracket"} and found.evidence == "draws":
        raise UserError(
            f"{mechanism} read {read} on {len(asked.sensitive)} features can only be"
            f" drawn: ask for evidence 'draws' or 'auto' instead of {evidence!r}."
        )
    bound = np.full(asked.n, np.nan) if found.bound is None else found.bound
    return Agreement(
        found.agreement, found.lower, found.upper, bound, found.evidence, found.queries
    )


def _known(asked: Setting, evidence: Wanted, surrogate: Surrogate | None) -> Known:
    """Return what is known; with a surrogate its trees stand beside the black box."""
    if surrogate is None:
        return known(asked, evidence=evidence)
    found = known(asked, engine=BlackBox())
    return replace(found, surface=surrogate.beside(cast(Drawn, found.surface)))
