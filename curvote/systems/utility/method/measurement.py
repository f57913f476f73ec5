"""Measurements of deployments: per record, as intervals, and as rows of a table."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import SeededEntropy, random_permutation
from curvote.base.validate import FloatArray
from curvote.systems.utility.method import intervals
from curvote.systems.utility.method.deployment import Deployment, Places, Setting
from curvote.systems.utility.method.engines.base import Answers, Evidence


@dataclass(frozen=True)
class Measurement:
    """Agreement of each record, (n,), between ``lower`` and ``upper``.

    ``right`` (n,) is the probability that the answer is the label, None without labels;
    ``bound`` and ``claimed`` (n,) are the box bound and the figure of the published
    procedure, None where there is none. ``queries`` (n,) counts answers of the model.
    ``confidence`` is that of each interval, where evidence is drawn; ``draw_count`` is
    how many plain draws stand behind each record's share, 0 if none do.
    """

    agreement: FloatArray
    lower: FloatArray
    upper: FloatArray
    right: FloatArray | None
    evidence: Evidence
    queries: NDArray[np.int64]
    bound: FloatArray | None = None
    claimed: FloatArray | None = None
    confidence: float | None = None
    draw_count: int = 0

    def of(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Measurement:
        """Return some of the records."""
        arrays: dict[str, Any] = {
            name: value[which]
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray)
        }
        return replace(self, **arrays)


def measure_agreement(
    answers: Answers, clean: Places, labels: Places | None, confidence: float
) -> Measurement:
    """Return agreement with ``clean`` and accuracy from the shares of all classes."""
    rows = np.arange(len(clean))
    return Measurement(
        answers.share[rows, clean],
        answers.lower[rows, clean],
        answers.upper[rows, clean],
        None if labels is None else answers.share[rows, labels],
        answers.evidence,
        answers.queries,
        confidence=confidence if answers.evidence == "draws" else None,
        draw_count=answers.draw_count,
    )


def exact_answers(shares: FloatArray, queries: int) -> Answers:
    """Return exact shares (n, K) as answers, at so many queries a record."""
    query_counts = np.full(len(shares), queries, dtype=np.int64)
    return Answers(shares, shares, shares, "exact", query_counts)


def fixed_answers(places: Places, n_classes: int) -> Answers:
    """Return the answers of records that are answered without chance."""
    return exact_answers(np.eye(n_classes)[places], 1)


CONFIDENCE = 0.95


def mean_agreement_interval(
    measured: Measurement, *, sample: bool
) -> tuple[float, float]:
    """Return an interval of the mean agreement of records or population.

    Of these very records: exact evidence has none (both ends are the mean), brackets
    are averaged, and draws are counted together (`binomial.mean_share_interval`). With
    ``sample``, of the population that the records are drawn from
    (`bounded.population_mean_interval`), at the evidence's confidence or .95.
    """
    confidence = CONFIDENCE if measured.confidence is None else measured.confidence
    if sample:
        values = measured.lower, measured.upper
        if measured.evidence == "draws":
            values = measured.agreement, measured.agreement
        order = random_permutation(len(measured.agreement), SeededEntropy(0))
        low, high = (np.clip(ends[order], 0.0, 1.0) for ends in values)
        down, up = intervals.population_mean_interval(low, high, confidence)
        mean = float(measured.agreement.mean())
        return min(down, mean), max(up, mean)
    if measured.evidence != "draws":
        return float(measured.lower.mean()), float(measured.upper.mean())
    if not measured.draw_count:  # combined as independent ones (Zou & Donner 2008)
        middle, n = measured.agreement.mean(), len(measured.agreement)
        down = math.sqrt(np.sum((measured.agreement - measured.lower) ** 2)) / n
        up = math.sqrt(np.sum((measured.upper - measured.agreement) ** 2)) / n
        return max(0.0, float(middle - down)), min(1.0, float(middle + up))
    counts = np.rint(measured.agreement * measured.draw_count)
    return intervals.mean_share_interval(counts, measured.draw_count, confidence)


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
    chosen = np.ones(setting.n, dtype=bool) if which is None else which
    if group is not None and setting.groups is not None:
        chosen = np.asarray(chosen & (setting.groups == group))
    part = measured.of(chosen)
    labels = None if setting.labels is None else setting.labels[chosen]
    lower, upper = mean_agreement_interval(part, sample=sample)
    split, under = deployment.split, None
    if target is not None:
        under = float(np.mean(part.agreement < target))
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
        under_target=under,
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
    groups = () if setting.groups is None else sorted(set(setting.groups.tolist()))
    return [
        make_row(setting, deployment, measured, group=group, **options)
        for group in (None, *groups)
    ]


def balanced_accuracy(
    right: FloatArray | None, labels: NDArray[Any] | None
) -> float | None:
    """Return the mean over the classes of the share answered right."""
    if right is None or labels is None:
        return None
    shares = [right[labels == label].mean() for label in np.unique(labels)]
    return float(np.mean(shares))


def _mean_or_none(values: FloatArray | None) -> float | None:
    return None if values is None else float(values.mean())
