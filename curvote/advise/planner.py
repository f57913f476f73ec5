"""Planner of MRMA: how accurate it will be, from public quantities and a prior alone.

A nearest-centroid rule needs the two class means of its reports only, and these are
means of many independent noised values: normal, with variances that the mechanism
states. Learners that draw from the same reports share the error of the mean of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from heapq import nlargest
from itertools import product
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from curvote.advise.mrma import keep_probability, total_variation
from curvote.advise.prior import UtilityPrior
from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.privacy import label_budget_share
from curvote.base.validate import FloatArray
from curvote.client.report import Reporter
from curvote.learning.votes import WHEN_NONE_PASS


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
    def votes(self) -> NDArray[np.int64]:
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
            kind = case.mechanism
            raise UserError(f"{kind} is biased; plan with an unbiased mechanism.")
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
    of_class = (positives, learner_positives), (negatives, n - learner_positives)
    means = []
    for mean, variance, (totals, counts) in zip(
        law.mean, law.variance, of_class, strict=True
    ):
        d, few, many = len(mean), 1 / np.maximum(counts, 1), 1 / np.maximum(totals, 1)
        out = rng.standard_normal((*counts.shape, d))
        out *= np.sqrt(np.maximum(few - many, 0))[..., None]
        out += np.sqrt(many)[..., None] * rng.standard_normal((len(counts), 1, d))
        out *= np.sqrt(variance)
        out += mean
        means.append(out)
    return MeanReports(*means)


BoolArray = NDArray[np.bool_]

REPLICATES = 4000
VALUES = 2**23  # coordinates that may be drawn for each class
FEWEST = 200
INTERVAL = (0.025, 0.975)


@dataclass(frozen=True)
class Prediction:
    """What to expect of one run, over the noise, the draws and the votes.

    Parameters
    ----------
    accuracy : float
        The mean accuracy of the final classifier on unperturbed data.
    spread : float
        Its standard deviation from run to run.
    interval : (float, float)
        The middle 95 %.
    weak, weak_spread : float
        Mean and standard deviation of the accuracies of the weak classifiers before
        reversal.
    reversal_right : float
        How often reversal leaves the better of f and -f.
    none_passed : float
        How often no utility is above the cutoff.
    standard_error : float
        Of ``accuracy``, from a finite number of draws.

    Examples
    --------
    >>> from curvote.theory import UtilityPrior, predict
    >>> sizes = {"n_per_learner": 50, "n_learners": 25, "cutoff": 0.8}
    >>> found = predict(500, 2500, 4, 4.0, UtilityPrior(best=0.9), **sizes)
    >>> print(f"{found.accuracy:.2f}, weak ones {found.weak:.2f}")
    0.84, weak ones 0.53
    """

    accuracy: float
    spread: float
    interval: tuple[float, float]
    weak: float
    weak_spread: float
    reversal_right: float
    none_passed: float
    standard_error: float


@dataclass(frozen=True)
class PolledCrowd:
    """Classifiers, their true accuracies, and the votes' reversal and utility [R, B].

    ``utility`` is the estimate after reversal.
    """

    crowd: WeakClassifiers
    true: FloatArray
    reversed: BoolArray
    utility: FloatArray


def predict(
    n_train: int,
    n_vote: int,
    d: int,
    epsilon: float,
    prior: UtilityPrior,
    *,
    n_per_learner: int,
    n_learners: int,
    cutoff: float,
    when_none_pass: str = "soft",
    mechanism: str = "laplace",
    seed: int = 0,
) -> Prediction:
    """Return the accuracy that MRMA with nearest-centroid learners will reach.

    Nothing but these numbers, the noise that an unbiased ``mechanism`` states and
    ``prior`` enters: thousands of draws of class means and vote counts. No other
    learner depends on class means alone; under noise this is the one to take.

    Parameters
    ----------
    n_train, n_vote : int
        Clients who report (z in [-1, 1]^d, label), and who vote.
    d : int
        Numbers of a report.
    epsilon : float
        Budget of each client.
    prior : UtilityPrior
        How useful classifiers of the task can be.
    n_per_learner, n_learners : int
        Reports that a classifier learns from, and the classifiers that share the votes.
    cutoff : float in [0.5, 1)
        After reversal they are averaged by max(u - cutoff, 0).
    when_none_pass : "soft", "best" or "uniform", default="soft"
        What is averaged where no utility is above the cutoff.
    mechanism : str, default="laplace"
        What noises a number.
    seed : int, default=0
        Of the draws.

    Returns
    -------
    Prediction
        Of one run.

    Examples
    --------
    >>> from curvote.theory import UtilityPrior
    >>> sizes = {"n_per_learner": 50, "n_learners": 25, "cutoff": 0.8}
    >>> found = predict(500, 2500, 4, 4.0, UtilityPrior(best=0.9), **sizes)
    >>> print(f"{found.accuracy:.2f}, weak ones {found.weak:.2f}")
    0.84, weak ones 0.53
    """
    case = Case(d, epsilon, prior, mechanism)
    sizes = Sizes(n_train, n_vote, n_per_learner, n_learners)
    polled = poll_crowd(case, sizes, seed)
    final, none_passed = final_accuracies(polled, prior, cutoff, when_none_pass)
    low, high = np.quantile(final, INTERVAL)
    return Prediction(
        accuracy=float(final.mean()),
        spread=float(final.std()),
        interval=(float(low), float(high)),
        weak=float(polled.true.mean()),
        weak_spread=float(polled.true.std()),
        reversal_right=float(((polled.true >= 0.5) != polled.reversed).mean()),
        none_passed=float(none_passed.mean()),
        standard_error=float(final.std() / np.sqrt(len(final))),
    )


def poll_crowd(
    case: Case, sizes: Sizes, seed: int, replicates: int = REPLICATES
) -> PolledCrowd:
    """Return weak classifiers with their true accuracies, and what the votes say.

    ``replicates`` are fewer, and at least FEWEST, where the crowds are large.
    """
    rng = np.random.default_rng(seed)
    most = VALUES // (sizes.n_learners * case.d)
    law = Reports.from_case(case)
    means = draw_means(rng, law, sizes, max(FEWEST, min(replicates, most)))
    crowd = means.centroid(law)
    true = case.prior.utility(crowd.coef, crowd.intercept)
    votes, keep = sizes.votes, keep_probability(case.epsilon)
    positive = rng.binomial(votes, (2 * keep - 1) * true + 1 - keep)
    # The better side's estimate, (max(positive, n - positive)/n + q - 1)/(2q - 1)
    utility = 0.5 + np.abs(positive / votes - 0.5) / (2 * keep - 1)
    return PolledCrowd(crowd, true, 2 * positive < votes, utility)


def final_accuracies(
    polled: PolledCrowd,
    prior: UtilityPrior,
    cutoff: float,
    when_none_pass: str = "soft",
) -> tuple[FloatArray, BoolArray]:
    """Return the accuracies [R] of averaged classifiers, and where none passed."""
    validate.one_of(WHEN_NONE_PASS, when_none_pass=when_none_pass)
    if not 0.5 <= cutoff < 1:
        raise UserError(f"cutoff is {cutoff!r}; it must lie in [0.5, 1).")
    # The weights of `curvote.learning.votes`, up to their scale.
    weight = np.maximum(polled.utility - cutoff, 0)
    none_passed = weight.max(axis=1) == 0
    fallback = polled.utility[none_passed]
    if when_none_pass == "best":
        best = fallback.argmax(axis=1)[:, None]
        fallback = np.where(np.arange(fallback.shape[1]) == best, 1.0, 0.0)
    elif when_none_pass == "uniform":
        fallback = np.ones_like(fallback)
    else:
        fallback = fallback - 0.5
        fallback[fallback.max(axis=1) == 0] = 1
    weight[none_passed] = fallback
    signed = np.where(polled.reversed, -weight, weight)[:, None, :]
    coef = (signed @ polled.crowd.coef)[:, 0]
    intercept = (signed @ polled.crowd.intercept[..., None])[:, 0, 0]
    return prior.utility(coef, intercept), none_passed


RUNS, LEARNERS = 200, 100
MANY = 10**7  # reports, so that learners share next to none
NEAREST = 1e-3


def prior_from_weak(
    prior: UtilityPrior,
    weak: float,
    n_per_learner: int,
    d: int,
    epsilon: float,
    *,
    mechanism: str = "laplace",
) -> UtilityPrior:
    """Return ``prior`` with the separation that gives weak classifiers ``weak``.

    Parameters
    ----------
    prior : UtilityPrior
        What is believed beside the separation.
    weak : float
        The mean true accuracy of weak classifiers before reversal: the mean estimated
        utility of a pilot, for example.
    n_per_learner : int
        The reports that each learns from.
    d : int
        Numbers of a report.
    epsilon : float
        Budget of a report.
    mechanism : str, default="laplace"
        As in `predict`.

    Returns
    -------
    UtilityPrior
        Where no separation gives ``weak``, a UserError says what can be reached.

    Examples
    --------
    >>> from curvote.theory import UtilityPrior
    >>> prior = UtilityPrior(best=0.9)
    >>> found = prior_from_weak(prior, weak=0.6, n_per_learner=50, d=4, epsilon=4.0)
    >>> print(f"{prior.distance:.2f} {found.distance:.2f}")
    0.77 1.51
    """
    case = Case(d, epsilon, prior, mechanism)
    sizes = Sizes(MANY, LEARNERS, n_per_learner, LEARNERS)

    def weak_accuracy(log_separation: float) -> float:
        candidate = replace(prior, separation=math.exp(log_separation))
        law = Reports.from_case(replace(case, prior=candidate))
        means = draw_means(np.random.default_rng(0), law, sizes, RUNS)
        # Over mirrored pairs: what noise alone makes of one it takes from the other,
        # and the little that is left is the signal.
        crowds = (half.centroid(law) for half in (means, means.mirrored(law)))
        pair = [candidate.utility(crowd.coef, crowd.intercept) for crowd in crowds]
        return float(np.mean(pair))

    ends = math.log(NEAREST), math.log(2 * math.sqrt(d))  # the cube's diagonal
    low, high = map(weak_accuracy, ends)
    if not low < weak < high:
        raise UserError(
            f"weak is {weak!r}; with these reports weak classifiers have mean"
            f" accuracies between {low:.4f} and {high:.4f}."
        )
    solution = brentq(lambda x: weak_accuracy(x) - weak, *ends, xtol=1e-6)
    return replace(prior, separation=math.exp(solution))


TRAIN_SHARES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7)
LEARNER_SHARES = (0.1, 0.25, 0.5, 1.0)
COUNTS = (1, 5, 10, 20, 40, 80, 160)
CUTOFFS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
FEWEST_REPORTS = 5  # of a learner, for each coordinate and the label
LEAST_CLIENTS = 50
ROUGH, FINALISTS = 300, 12


@dataclass(frozen=True)
class Plan:
    """Recommended settings, and what to expect of them.

    Parameters
    ----------
    n_train, n_vote, n_per_learner, n_learners : int
        As in `predict`.
    cutoff : float
        As in `predict`.
    prediction : Prediction
        Of these settings.

    Examples
    --------
    >>> from curvote.theory import UtilityPrior, recommend
    >>> plan = recommend(50, 2, 4.0, UtilityPrior(best=0.9))
    >>> print(plan.n_train + plan.n_vote, plan.cutoff)
    50 0.8
    """

    n_train: int
    n_vote: int
    n_per_learner: int
    n_learners: int
    cutoff: float
    prediction: Prediction


def recommend(
    n: int,
    d: int,
    epsilon: float,
    prior: UtilityPrior,
    *,
    when_none_pass: str = "soft",
    mechanism: str = "laplace",
) -> Plan:
    """Return the settings of highest expected accuracy.

    All settings of a grid are compared on common random numbers, the best again on new
    and more of them; the prediction comes from a third stream, so that it is not the
    luck of the chosen one.

    Parameters
    ----------
    n : int
        Clients in all, 50 or more.
    d : int
        Numbers of a report.
    epsilon : float
        Budget of each client.
    prior : UtilityPrior
        How useful classifiers of the task can be.
    when_none_pass, mechanism : str, default="soft", "laplace"
        As in `predict`.

    Returns
    -------
    Plan
        The settings, and what to expect of them.

    Examples
    --------
    >>> from curvote.theory import UtilityPrior
    >>> plan = recommend(50, 2, 4.0, UtilityPrior(best=0.9))
    >>> print(plan.n_learners, f"{plan.prediction.accuracy:.2f}")
    5 0.69
    """
    validate.at_least(LEAST_CLIENTS, n=n)
    case = Case(d, epsilon, prior, mechanism)
    # All sizes to compare, each once; learners that are all one only once.
    grid: dict[tuple[int, int, int, int], None] = {}
    least = FEWEST_REPORTS * (d + 1)
    for share, part, count in product(TRAIN_SHARES, LEARNER_SHARES, COUNTS):
        n_train = round(n * share)
        size = min(max(round(n_train * part), least), n_train)
        if n_train >= 2 and count <= n - n_train:
            grid[n_train, n - n_train, size, 1 if size == n_train else count] = None
    options = ((Sizes(*numbers), CUTOFFS) for numbers in grid)
    rated = _rate_sizes(case, options, when_none_pass, 1, ROUGH)
    few = nlargest(FINALISTS, rated, key=itemgetter(0))
    finalists = ((sizes, (cutoff,)) for _, sizes, cutoff in few)
    rated = _rate_sizes(case, finalists, when_none_pass, 2, REPLICATES)
    _, sizes, cutoff = max(rated, key=itemgetter(0))
    settings: dict[str, Any] = asdict(sizes) | {"cutoff": cutoff}
    ways: dict[str, Any] = {"when_none_pass": when_none_pass, "mechanism": mechanism}
    prediction = predict(d=d, epsilon=epsilon, prior=prior, seed=3, **settings, **ways)
    return Plan(**settings, prediction=prediction)


@dataclass(frozen=True)
class ExcessBound:
    """Theorem 6 of MRMA on the excess error of the average, beside what draws give.

    Parameters
    ----------
    noise : float
        The term of the noise on z, 3/4 of the L1 distance of its laws.
    learners : float
        Twice what the best of the classifiers lacks to the best rule.
    simulated : float
        The excess error of the average in the planner's draws.

    Examples
    --------
    >>> from curvote.theory import ExcessBound
    >>> bound = ExcessBound(noise=1.2, learners=0.05, simulated=0.125)
    >>> print(f"{bound.total:.2f}, {bound.factor:.0f} times as much")
    1.25, 10 times as much
    """

    noise: float
    learners: float
    simulated: float

    @property
    def total(self) -> float:
        """The bound; one above what the constant classifier lacks says nothing."""
        return self.noise + self.learners

    @property
    def factor(self) -> float:
        """How many times the simulated excess error the bound is."""
        return self.total / self.simulated if self.simulated > 0 else math.inf


def bound_excess(
    plan: Plan, d: int, epsilon: float, prior: UtilityPrior
) -> ExcessBound:
    """Return theorem 6's bound on the excess error of a plan, beside the drawn one.

    A heuristic. The theorem lets the share of classifiers above the cutoff vanish, its
    proof the share below; with unbounded noise and B without end its last term is 0
    whatever is learnt. So the best of the plan's B classifiers stands for the limit,
    the first term is left at its least, 0, and z is uniform, as in figure A.6.

    Parameters
    ----------
    plan : Plan
        Settings with Laplace noise.
    d, epsilon, prior
        As in `recommend`.

    Returns
    -------
    ExcessBound
        Its two terms, and what the planner's draws give.

    Examples
    --------
    >>> from curvote.theory import UtilityPrior, bound_excess, recommend
    >>> prior = UtilityPrior(best=0.9)
    >>> bound = bound_excess(recommend(50, 2, 4.0, prior), 2, 4.0, prior)
    >>> print(f"{bound.total:.2f} against {bound.simulated:.2f}")
    1.42 against 0.21
    """
    sizes = Sizes(plan.n_train, plan.n_vote, plan.n_per_learner, plan.n_learners)
    true = poll_crowd(Case(d, epsilon, prior), sizes, seed=3).true
    best = float(np.maximum(true, 1 - true).max(axis=1).mean())
    epsilon_z = (1 - label_budget_share("equal", d)) * epsilon
    # The theorem's distance is the L1 norm, twice that of figure A.6.
    noise, excess = 1.5 * total_variation(d, epsilon_z), prior.best - best
    return ExcessBound(noise, 2 * excess, prior.best - plan.prediction.accuracy)


def _rate_sizes(
    case: Case,
    options: Iterable[tuple[Sizes, tuple[float, ...]]],
    when_none_pass: str,
    seed: int,
    replicates: int,
) -> Iterator[tuple[float, Sizes, float]]:
    """Yield the expected accuracy of all sizes with their cutoffs, and these."""
    for sizes, cutoffs in options:
        polled = poll_crowd(case, sizes, seed, replicates)
        for cutoff in cutoffs:
            final, _ = final_accuracies(polled, case.prior, cutoff, when_none_pass)
            yield float(final.mean()), sizes, cutoff
