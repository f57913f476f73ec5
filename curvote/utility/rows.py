"""A deployment's figures over a population, or a group of it, as one row."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.utility.deployments.deployment import Deployment
from curvote.utility.intervals import over_records
from curvote.utility.measured import Measured
from curvote.utility.setting import Setting
from curvote.validate import FloatArray


@dataclass(frozen=True)
class Row:
    """One line of the table; shares are in [0, 1], epsilon is the record's total.

    ``worst`` is the least agreement of a record that cannot be ruled out,
    ``under_target`` the share of records whose agreement is below the target.
    """

    mechanism: str
    split: dict[str, float] | None
    read: str
    epsilon: float
    delta: float
    agreement: float
    lower: float
    upper: float
    worst: float
    under_target: float | None
    bound: float | None
    claimed: float | None
    accuracy: float | None
    balanced_accuracy: float | None
    group: str | None
    evidence: str
    queries: int

    def as_json(self) -> dict[str, Any]:
        """Return the row as the command prints it."""
        return asdict(self)


def row(
    setting: Setting,
    deployment: Deployment,
    measured: Measured,
    *,
    which: NDArray[np.bool_] | None = None,
    group: str | None = None,
    target: float | None = None,
    sample: bool = False,
) -> Row:
    """Return the figures over all records, those of ``which`` (n,), or a ``group``.

    With ``sample`` the records are a sample of a larger population and the interval
    says so (`intervals.over_records`).
    """
    chosen = _chosen(setting, which, group)
    part = measured.of(chosen)
    labels = None if setting.labels is None else setting.labels[chosen]
    lower, upper = over_records(part, sample=sample)
    split = deployment.split
    return Row(
        mechanism=deployment.mechanism,
        split=None if split is None else dict(zip(setting.names, split, strict=True)),
        read=deployment.read,
        epsilon=deployment.epsilon,
        delta=deployment.delta,
        agreement=float(part.agreement.mean()),
        lower=lower,
        upper=upper,
        worst=float(part.lower.min()),
        under_target=_under(part.agreement, target),
        bound=_mean(part.bound),
        claimed=_mean(part.claimed),
        accuracy=_mean(part.right),
        balanced_accuracy=balanced(part.right, labels),
        group=group,
        evidence=part.evidence,
        queries=int(part.queries.sum()),
    )


def rows_of(
    setting: Setting, deployment: Deployment, measured: Measured, **asked: Any
) -> list[Row]:
    """Return the row of all records and one for each group."""
    names = [] if setting.groups is None else sorted(set(setting.groups.tolist()))
    every = [row(setting, deployment, measured, **asked)]
    return every + [
        row(setting, deployment, measured, group=name, **asked) for name in names
    ]


def _chosen(
    setting: Setting, which: NDArray[np.bool_] | None, group: str | None
) -> NDArray[np.bool_]:
    chosen = np.ones(setting.n, dtype=bool) if which is None else which
    if group is None or setting.groups is None:
        return chosen
    return np.asarray(chosen & (setting.groups == group))


def balanced(right: FloatArray | None, labels: NDArray[Any] | None) -> float | None:
    """Return the mean over the labels' classes of how often a class is answered."""
    if right is None or labels is None:
        return None
    return float(np.mean([right[labels == each].mean() for each in np.unique(labels)]))


def _mean(values: FloatArray | None) -> float | None:
    return None if values is None else float(values.mean())


def _under(agreement: FloatArray, target: float | None) -> float | None:
    return None if target is None else float(np.mean(agreement < target))
