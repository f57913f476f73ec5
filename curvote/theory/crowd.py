"""Planner of MRMA: how accurate it will be, from public quantities and a prior alone.

A nearest-centroid rule needs the two class means of its reports only, and these are
means of many independent noised values: normal, with variances that the mechanism
states. Learners that draw from the same reports share the error of the mean of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curvote import validate
from curvote.client.report import Reporter
from curvote.errors import UserError
from curvote.theory.prior import UtilityPrior
from curvote.validate import FloatArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """The given quantities: ``d`` coordinates, ``epsilon``, a prior, a mechanism."""

    d: int
    epsilon: float
    prior: UtilityPrior
    mechanism: str = "laplace"

    def __post_init__(self) -> None:
        validate.at_least(1, d=self.d)
        validate.positive(epsilon=self.epsilon)


@dataclass(frozen=True)
class Sizes:
    """The chosen quantities: clients who report and who vote, and classifiers.

    ``n_learners`` classifiers learn from ``n_per_learner`` of the ``n_train`` reports
    each and share ``n_vote`` votes as evenly as can be. Sizes that do not fit are
    UserErrors.
    """

    n_train: int
    n_vote: int
    n_per_learner: int
    n_learners: int

    def __post_init__(self) -> None:
        if validate.at_least(2, n_per_learner=self.n_per_learner) > self.n_train:
            raise UserError(
                f"n_per_learner is {self.n_per_learner}, but only {self.n_train}"
                " clients report."
            )
        if validate.at_least(1, n_learners=self.n_learners) > self.n_vote:
            raise UserError(
                f"n_learners is {self.n_learners}, but only {self.n_vote} clients vote;"
                " each classifier needs one at least."
            )

    @property
    def votes(self) -> IntArray:
        """The votes on each classifier, [B]; they differ by 1 at most."""
        share, more = divmod(self.n_vote, self.n_learners)
        return share + (np.arange(self.n_learners) < more)


@dataclass(frozen=True)
class Reports:
    """The law of reports: the noised label's, and the scatter of a noised z.

    ``positive``: the probability of a noised label +1. ``mean`` and ``variance``
    [2, d]: of a noised z with the noised label +1 and -1, in the prior's coordinates,
    where the classes differ on the first axis.
    """

    positive: float
    mean: FloatArray
    variance: FloatArray

    @classmethod
    def from_case(cls, case: Case) -> Reports:
        """Return the law for clients who spend ``case.epsilon`` on a report.

        The label and each coordinate get equal parts (MRMA, section 5.1). A mechanism
        whose output is biased is a UserError: its means say something else.
        """
        reporter = Reporter.build(case.d, case.epsilon, case.mechanism, "equal")
        prior, keep = case.prior, reporter.label.keep
        if not reporter.features.unbiased:
            raise UserError(
                f"{case.mechanism} is biased; plan with an unbiased mechanism."
            )
        usual = np.full((1, case.d), prior.spread)
        noise = reporter.features.variance(usual).mean()
        positive = prior.positive * keep + (1 - prior.positive) * (1 - keep)
        keep_shares = np.array([keep / positive, (1 - keep) / (1 - positive)])
        true = prior.positive * keep_shares  # P(label +1 | noised label)
        mean = np.zeros((2, case.d))
        mean[:, 0] = (true - 0.5) * prior.distance
        variance = np.full((2, case.d), noise + prior.spread**2)
        false = true * (1 - true) * prior.distance**2
        variance[:, 0] = noise + prior.along**2 + false
        return cls(positive, mean, variance)

    @property
    def within(self) -> FloatArray:
        """Return the pooled variance within the noised classes, [d]."""
        return np.array([self.positive, 1 - self.positive]) @ self.variance


@dataclass(frozen=True)
class WeakClassifiers:
    """Weak classifiers of R runs: ``coef`` [R, B, d] and ``intercept`` [R, B]."""

    coef: FloatArray
    intercept: FloatArray


@dataclass(frozen=True)
class MeanReports:
    """The mean reports of both noised labels, each [R, B, d]."""

    first: FloatArray
    second: FloatArray

    def mirrored(self, law: Reports) -> MeanReports:
        """Return means whose errors have the other sign: as probable as these."""
        return MeanReports(2 * law.mean[0] - self.first, 2 * law.mean[1] - self.second)

    def centroid(self, law: Reports) -> WeakClassifiers:
        """Return the classifiers that ``learners.centroid`` makes of them.

        As long as the mean difference over the variance along it; cut midway.
        """
        coef = self.first - self.second
        square = np.square(coef)
        coef *= (square.sum(axis=-1) / (square @ law.within))[..., None]
        total = self.first + self.second
        return WeakClassifiers(coef, -np.einsum("rbd,rbd->rb", coef, total) / 2)


def draw_means(
    rng: np.random.Generator, law: Reports, sizes: Sizes, replicates: int
) -> MeanReports:
    """Return the mean reports that the learners of ``replicates`` runs see.

    Each learns from some of the same reports, drawn without replacement, so that its
    class mean differs from that of all reports by a variance of v (1/n - 1/N) (Cochran
    1977, theorem 2.2).
    """
    n, shape = sizes.n_per_learner, (replicates, sizes.n_learners)
    positives = rng.binomial(sizes.n_train, law.positive, size=(replicates, 1))
    negatives = sizes.n_train - positives
    learner_positives = rng.hypergeometric(positives, negatives, n, size=shape)
    return MeanReports(
        _draw_class_means(
            rng, law.mean[0], law.variance[0], positives, learner_positives
        ),
        _draw_class_means(
            rng, law.mean[1], law.variance[1], negatives, n - learner_positives
        ),
    )


def _draw_class_means(
    rng: np.random.Generator,
    mean: FloatArray,
    variance: FloatArray,
    totals: IntArray,
    counts: IntArray,
) -> FloatArray:
    """Return the mean report of one noised label for each learner, [R, B, d]."""
    few, many = 1 / np.maximum(counts, 1), 1 / np.maximum(totals, 1)
    out = rng.standard_normal((*counts.shape, len(mean)))
    out *= np.sqrt(np.maximum(few - many, 0))[..., None]
    out += np.sqrt(many)[..., None] * rng.standard_normal((len(counts), 1, len(mean)))
    out *= np.sqrt(variance)
    out += mean
    return np.asarray(out)
