"""Agreement of each record under one deployment: the library's one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.utility.method.deployment import (
    Deployment,
    ReadMode,
    check_deployment,
    deployment_channel,
    equal_split,
)
from curvote.systems.utility.method.engines.base import Draws, Evidence
from curvote.systems.utility.method.engines.black_box import BlackBox, BlackBoxSurface
from curvote.systems.utility.method.profile import (
    EvidenceWanted,
    Profile,
    build_profile,
)
from curvote.systems.utility.method.scan import measure
from curvote.systems.utility.method.setting import Setting, make_setting
from curvote.systems.utility.method.surrogates import Surrogate


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
        values = self.agreement
        return (
            f"Agreement(mean={values.mean():.3f}, worst={values.min():.3f},"
            f" records={len(values)}, evidence={self.evidence!r})"
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
    read: ReadMode = "raw",
    evidence: EvidenceWanted = "auto",
    draws: int = 2000,
    confidence: float = 0.95,
    surrogate: Surrogate | None = None,
    entropy: Entropy | None = None,
    public: ArrayLike | None = None,
    train: tuple[ArrayLike, ArrayLike] | None = None,
    **params: Any,
) -> Agreement:
    """Return the agreement of each record's noised answer with its clean one.

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
    setting_checked = make_setting(
        model, records, sensitive=sensitive, bounds=bounds, public=public, train=train
    )
    mechanism_params = {key: value for key, value in params.items() if key != "delta"}
    deployment = Deployment(
        mechanism,
        epsilon,
        equal_split(mechanism, len(setting_checked.sensitive))
        if split is None
        else tuple(split),
        read,
        float(params.get("delta", 0.0)),
        mechanism_params,
    )
    # Before anything is asked of the model.
    deployment_channel(setting_checked, check_deployment(deployment, setting_checked))
    drawing = Draws(
        validate.at_least(1, draws=draws),
        validate.fraction(confidence=confidence),
        entropy,
    )
    measurement = measure(
        setting_checked,
        _profile_with_surrogate(setting_checked, evidence, surrogate),
        deployment,
        drawing,
    )
    if evidence in {"exact", "bracket"} and measurement.evidence == "draws":
        raise UserError(
            f"{mechanism} read {read} on {len(setting_checked.sensitive)} features can"
            " only be"
            f" drawn: ask for evidence 'draws' or 'auto' instead of {evidence!r}."
        )
    bound = (
        np.full(setting_checked.n, np.nan)
        if measurement.bound is None
        else measurement.bound
    )
    return Agreement(
        measurement.agreement,
        measurement.lower,
        measurement.upper,
        bound,
        measurement.evidence,
        measurement.queries,
    )


def _profile_with_surrogate(
    setting: Setting, evidence: EvidenceWanted, surrogate: Surrogate | None
) -> Profile:
    """Return the profile; with a surrogate its trees stand beside the black box."""
    if surrogate is None:
        return build_profile(setting, evidence=evidence)
    profile = build_profile(setting, engine=BlackBox())
    return replace(
        profile, surface=surrogate.beside(cast(BlackBoxSurface, profile.surface))
    )
