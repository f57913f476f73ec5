"""A deployment's figures over a population, or a group of it, as one row."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.utility.deployments.deployment import Deployment
from curvote.utility.intervals import mean_agreement_interval
from curvote.utility.measured import Measurement
from curvote.utility.setting import Setting
from curvote.validate import FloatArray


@dataclass(frozen=True)
class Row:
    """One row of figures; shares are in [0, 1], epsilon is the record's total.

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


def make_row(
    setting: Setting,
    deployment: Deployment,
    measured: Measurement,
    *,
    which: NDArray[np.bool_] | None = None,
    group: str | None = None,
    target: float | None = None,
    sample: bool = False,
) -> Row:
    """Return the figures over all records, those of ``which`` (n,), or a ``group``.

    With ``sample`` the records are a sample of a larger population and the interval
    says so (`intervals.mean_agreement_interval`).
    """
    chosen = _select_records(setting, which, group)
    part = measured.of(chosen)
    labels = None if setting.labels is None else setting.labels[chosen]
    lower, upper = mean_agreement_interval(part, sample=sample)
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
        under_target=_share_below(part.agreement, target),
        bound=_mean_or_none(part.bound),
        claimed=_mean_or_none(part.claimed),
        accuracy=_mean_or_none(part.right),
        balanced_accuracy=balanced_accuracy(part.right, labels),
        group=group,
        evidence=part.evidence,
        queries=int(part.queries.sum()),
    )


def make_rows(
    setting: Setting, deployment: Deployment, measured: Measurement, **options: Any
) -> list[Row]:
    """Return the row of all records and one for each group."""
    names = [] if setting.groups is None else sorted(set(setting.groups.tolist()))
    rows = [make_row(setting, deployment, measured, **options)]
    return rows + [
        make_row(setting, deployment, measured, group=name, **options) for name in names
    ]


def _select_records(
    setting: Setting, which: NDArray[np.bool_] | None, group: str | None
) -> NDArray[np.bool_]:
    """Return the mask of the selected records."""
    chosen = np.ones(setting.n, dtype=bool) if which is None else which
    if group is None or setting.groups is None:
        return chosen
    return np.asarray(chosen & (setting.groups == group))


def balanced_accuracy(
    right: FloatArray | None, labels: NDArray[Any] | None
) -> float | None:
    """Return the mean over the classes of the share answered right."""
    if right is None or labels is None:
        return None
    return float(
        np.mean([right[labels == label].mean() for label in np.unique(labels)])
    )


def _mean_or_none(values: FloatArray | None) -> float | None:
    return None if values is None else float(values.mean())


def _share_below(agreement: FloatArray, target: float | None) -> float | None:
    """Return the share of records below the target, None without one."""
    return None if target is None else float(np.mean(agreement < target))
