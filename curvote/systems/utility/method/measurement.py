"""Measurements of deployments, rows of their figures, and a recommendation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.entropy import SeededEntropy, random_permutation
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.utility.method import intervals
from curvote.systems.utility.method.deployment import (
    OUTPUT,
    Deployment,
    Places,
    Setting,
)
from curvote.systems.utility.method.engines.base import Answers, Evidence
from curvote.systems.utility.method.profile import Profile


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


Half = NDArray[np.bool_]
Halves = tuple[Half, Half]


def split_halves(setting: Setting, profile: Profile, seed: int) -> Halves:
    """Return two masks (n,) that split the records in half.

    They are dealt in an order drawn from ``seed``, alternately among those that are
    alike in clean answer, label and what the floors answer: so floors do alike on both
    halves, and the choice is not between two samples of them. Fewer than two records
    are a UserError.
    """
    if setting.n < 2:
        raise UserError(
            "A recommendation is about a population: give 2 records or more. One"
            " client's own figure must not decide what that client sends."
        )
    order = random_permutation(setting.n, SeededEntropy(seed))
    usual = None if profile.public is None else profile.usual_class
    alike = profile.clean, profile.withheld, setting.labels, profile.without, usual
    columns = np.column_stack([column for column in alike if column is not None])
    _, codes = np.unique(columns, axis=0, return_inverse=True)
    ordered = order[np.argsort(codes.ravel()[order], kind="stable")]
    first = np.zeros(setting.n, dtype=bool)
    first[ordered[::2]] = True
    return first, ~first


Metric = Literal["agreement", "accuracy"]
Pair = tuple[Deployment, Measurement]
Scan = Sequence[Pair]


@dataclass(frozen=True)
class Goal:
    """Goal: a metric's mean, or ``target`` for a ``share`` of records, and its words.

    ``names`` are the sensitive features'.
    """

    names: tuple[str, ...]
    metric: Metric
    target: float | None
    share: float | None

    def value(self, measured: Measurement, which: Half) -> float:
        """Return the compared value: the mean, or the share at the target.

        Drawn records count as there where their interval lies above the target.
        """
        agreement = self.metric == "agreement"
        values = measured.agreement if agreement else measured.right
        if values is None:
            raise UserError("Accuracy needs labels: give them, or ask for agreement.")
        if self.share is None or self.target is None:
            return float(values[which].mean())
        values = measured.lower if agreement else values
        return float(np.mean(values[which] >= self.target))

    def best(self, scan: Scan, which: Half) -> Pair:
        """Return the pair of the highest value, of equal ones the least epsilon."""
        ordered = sorted(scan, key=lambda pair: pair[0].epsilon)
        return max(ordered, key=lambda pair: self.value(pair[1], which))

    def describe(self, deployment: Deployment) -> str:
        """Return a deployment in words, with its total epsilon."""
        words, total = deployment.describe(self.names), deployment.epsilon
        return words if deployment.free else f"{words}, total epsilon {total:g}"

    def format_figure(self, pair: Pair, which: Half) -> str:
        """Return a pair's value in words."""
        value = self.value(pair[1], which)
        if self.share is None:
            return f"{self.metric} {value:.3f}"
        return f"{value:.1%} of records with {self.metric} {self.target:g}"


@dataclass(frozen=True)
class Recommendation:
    """Recommended deployment, its figures, and the reason.

    ``deployment`` and ``row`` are None where no total epsilon reaches the target.
    """

    deployment: Deployment | None
    row: Row | None
    reason: str

    def as_json(self) -> dict[str, Any]:
        """Return the row's keys, all None where there is none, and ``reason``."""
        if self.row is None:
            return {**dict.fromkeys(Row.__dataclass_fields__), "reason": self.reason}
        return {**asdict(self.row), "reason": self.reason}


def recommend(
    setting: Setting,
    profile: Profile,
    scan: Scan,
    *,
    target: float | None = None,
    epsilon: float | None = None,
    metric: Metric = "agreement",
    share: float | None = None,
    sample: bool = False,
    seed: int = 0,
) -> Recommendation:
    """Return the least total epsilon that reaches ``target``, or the best.

    ``scan`` holds deployments, floors among them, with what they do to each record.
    One of ``target`` (strictly between 0 and 1) and ``epsilon`` is given. A target is
    for the mean of ``metric``, or with ``share`` for at least that share of records,
    each by itself. It is chosen on one half of the records (`split_halves`, drawn from
    ``seed``), must hold on the other, and its figures are of the other. No total is
    skipped, since agreement need not grow with epsilon. What a floor equals on either
    half is not bought; a floor is shown on all records. Randomised response on the
    answer is recommended only where clients can run the model.
    """
    if (target is None) == (epsilon is None):
        raise UserError("Give one of target and epsilon: what to reach, or to spend.")
    validate.one_of(("agreement", "accuracy"), metric=metric)
    if target is not None:
        validate.fraction(target=target)
    if share is not None:
        validate.fraction(share=share)
    goal = Goal(setting.names, metric, target, share)
    limit = math.inf if epsilon is None else validate.positive(epsilon=epsilon)
    within = [
        pair
        for pair in scan
        if pair[0].epsilon <= limit
        and (setting.client_side or pair[0].mechanism != OUTPUT)
    ]
    floors = [pair for pair in within if pair[0].free]
    if not floors:
        raise UserError("A recommendation needs the floors: scan them as well.")
    halves = split_halves(setting, profile, seed)
    every = halves[0] | halves[1]
    needed = (target if share is None else share) or 0.0
    floor = goal.best(floors, every)

    def reaches(pair: Pair) -> bool:
        return all(goal.value(pair[1], half) >= needed for half in halves)

    def beats_floors(pair: Pair) -> bool:
        return not pair[0].free and all(
            goal.value(pair[1], half) > goal.value(measured, half)
            for half in halves
            for _, measured in floors
        )

    choice: Pair | None = floor
    if target is None:
        best = goal.best(within, halves[0])
        choice = best if beats_floors(best) else floor
    elif not reaches(floor):
        totals = sorted({deployment.epsilon for deployment, _ in within})
        by_total = [[pair for pair in within if pair[0].epsilon == t] for t in totals]
        bests = (goal.best(pairs, halves[0]) for pairs in by_total)
        fit = (best for best in bests if reaches(best) and beats_floors(best))
        choice = next(fit, None)
    if choice is None:
        most = max(deployment.epsilon for deployment, _ in within)
        near, wanted = goal.best(within, halves[1]), f"{metric} {target:g}"
        if share is not None:
            wanted = f"{wanted} in {share:.0%} of the records"
        reason = (
            f"No total epsilon up to {most:g} reaches {wanted} on both halves of"
            f" the records; the nearest is {goal.describe(near[0])},"
            f" {goal.format_figure(near, halves[1])}."
        )
        return Recommendation(None, None, reason)
    # The figures of what costs nothing are of all records.
    free, displayed = choice[0].free, every if choice[0].free else halves[1]
    n, against = int(displayed.sum()), "nothing that is sent was looked at"
    alternatives = [pair for pair in within if pair[0].free != free]
    if alternatives:  # a floor, or a noised deployment
        other = goal.best(alternatives, displayed)
        figure = goal.format_figure(other, displayed)
        against = f"{goal.describe(other[0])} has {figure}"
    begin = "Send nothing" if free else f"Send {goal.describe(choice[0])}"
    basis = f"all {n} records" if free else f"the {n} records that did not choose it"
    figure = goal.format_figure(choice, displayed)
    row = make_row(setting, *choice, which=displayed, target=target, sample=sample)
    return Recommendation(choice[0], row, f"{begin}: {figure} on {basis}; {against}.")
