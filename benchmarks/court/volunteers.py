"""Laws for `whitened` (records that spread unevenly) and for `pilot` (lines, ranges).

A direction of `whitened` spreads by j^-decay, turned or not; the label is logistic in
standard coordinates, whose weights are alike, fall with the spread, spare the widest
direction, or are two. Classes are equal in half of the laws. Of `pilot` a label follows
a line, the ranges in which numbers lie, or both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from benchmarks.court.cells import Cell, seeds
from benchmarks.laws import MANY, RECORDS
from curvote.base.entropy import SeededEntropy
from curvote.client.report import DirectionReporter
from curvote.curves.direction import Directions
from curvote.curves.partition import bin_partitions
from curvote.learning import cells as tables
from curvote.learning.directions import Line, ReportMean, one_round_classifier
from curvote.learning.volunteers import ridge_logistic
from curvote.learning.whitened import half_whitening, whitened_classifier
from curvote.mechanisms.randomized_response import KRR, BinaryRR
from curvote.messages.arms import make_directions
from curvote.systems.direct.system import choose_protocol, joined_arm
from curvote.systems.pilot.messages import LINE_END, TABLE_END

Array = NDArray[np.float64]
Rng = np.random.Generator
Rule = Callable[[Array], NDArray[np.bool_]]
COUNTS = {False: 100, True: 12}  # laws, in full and quick
BINS, REPEATS, TEST = 3, 12, 4000
# Records and the degree of each.
FAMILIES = {"normal": 0.0, "student": 4.0, "exponential": 0.0, "binary": 0.3}


@dataclass(frozen=True, eq=False)
class Law:
    """Law of a seed, of one ``kind``: N, d, volunteers, records and labels."""

    kind: str
    seed: int

    @cached_property
    def rng(self) -> Rng:
        return np.random.default_rng([33, self.kind == "pilot", self.seed])

    @cached_property
    def sizes(self) -> tuple[int, int, int]:
        """N, d and the number of volunteers."""
        n = np.exp(self.rng.uniform(*np.log([800, 6000])))
        n *= 1 + (self.kind == "pilot")
        return (
            int(n),
            int(self.rng.integers(2, 13)),
            int(self.rng.choice([30, 50, 100])),
        )

    @cached_property
    def shape(self) -> str:
        shapes = {"pilot": "line ranges both", "whitened": "alike wide wide spared two"}
        return str(self.rng.choice(shapes[self.kind].split()))

    @cached_property
    def _parts(self) -> tuple[Callable[[Rng, int], Array], Callable[[Array], Array]]:
        """Standard coordinates, and the log odds of the second class."""
        own, d = self.rng, self.sizes[1]
        family = str(own.choice([*FAMILIES]))
        sampler = RECORDS[family](own, d, FAMILIES[family])
        slopes, strength = own.standard_normal(d), own.uniform(1, 4)
        if self.shape == "wide":
            slopes *= self._spread ** own.uniform(0.5, 3)
        elif self.shape == "spared":
            slopes[0] *= d == 1
        elif self.shape == "two":
            slopes[own.permutation(d)[2:]] = 0
        cuts = np.sort(own.uniform(-1.3, 1.3, (d, 2)), axis=1)
        heights = own.standard_normal((d, 3))

        def score(base: Array) -> Array:
            if self.shape == "line" or self.kind == "whitened":
                return np.asarray(base @ slopes)
            cells = [
                np.searchsorted(cut, x) for cut, x in zip(cuts, base.T, strict=True)
            ]
            ranges = sum(h[c] for h, c in zip(heights, cells, strict=True))
            return np.asarray(ranges + (self.shape == "both") * (base @ slopes))

        known = score(sampler(own, MANY))
        times = strength / max(float(known.std()), 1e-9)
        share = float(own.choice([0.5, 0.5, 0.5, 0.6, 0.7, 0.8]))
        middle = brentq(lambda c: expit(times * known + c).mean() - share, -90, 90)
        return sampler, lambda base: times * score(base) + middle

    @cached_property
    def _spread(self) -> Array:
        spread = np.arange(1, self.sizes[1] + 1) ** -self.rng.uniform(0, 1.5)
        return np.asarray(spread / np.sqrt(np.mean(spread**2)))

    @cached_property
    def _place(self) -> tuple[Array, Array]:
        """The matrix and centre that make z of standard coordinates."""
        own, d = self.rng, self.sizes[1]
        if self.kind == "pilot":
            return np.eye(d), own.uniform(-0.4, 0.4, d)
        turned = np.linalg.qr(own.standard_normal((d, d)))[0]
        matrix = self._spread[:, None] * (turned if own.random() < 0.7 else np.eye(d))
        return matrix, (own.random() < 0.3) * own.uniform(-1, 1, d)

    def clients(self, rng: Rng, n: int) -> tuple[Array, Array]:
        """Return z (n, d) and labels -1/+1 (n,)."""
        sampler, logit = self._parts
        base = sampler(rng, n)
        labels = np.where(rng.random(n) < expit(logit(base)), 1.0, -1.0)
        return base @ self._place[0] + self._place[1], labels


def reports(
    z: Array, labels: Array, directions: Directions, epsilon: float, rng: Rng
) -> ReportMean:
    noise = SeededEntropy(int(rng.integers(2**62)))
    reporter = DirectionReporter.build(directions, epsilon)
    return ReportMean.from_reports(reporter.release(z, labels, noise, study=True))


def as_rule(line: Line) -> Rule:
    return lambda z: np.asarray(z @ line[0] + line[1] > 0)


def plain(z: Array, labels: Array, epsilon: float, rng: Rng, arm: str = "") -> Rule:
    """Return the rule of `direct`, of the arm that `auto` takes in one round."""
    n, d = z.shape
    arm = arm or joined_arm(choose_protocol(n, d, epsilon).arm) or "mean"
    given = make_directions(arm, d, "standard", "auto")
    mean = reports(z, labels, given, epsilon, rng)
    return as_rule(one_round_classifier(mean, given, epsilon))


def whitened(z: Array, labels: Array, epsilon: float, rng: Rng, public: Array) -> Rule:
    given = make_directions("mean", z.shape[1], "standard", "auto").whitened
    mean = reports(half_whitening(public).apply(z), labels, given, epsilon, rng)
    return as_rule(whitened_classifier(mean, given, epsilon, public))


def counts(z: Array, labels: Array, epsilon: float, rng: Rng) -> Rule:
    n, d = z.shape
    bins = bin_partitions(d, "standard", BINS)
    which = np.asarray(rng.integers(0, d, n))
    words = 2 * bins.place(z, which) + (labels > 0)
    noise = SeededEntropy(int(rng.integers(2**62)))
    told = KRR(epsilon=epsilon, n_classes=2 * BINS).randomize(words, noise)
    shares = tables.estimate_shares(which, told, (d, BINS, 2), epsilon)
    scores = tables.naive_bayes_scores(shares)
    return lambda x: tables.predict_cells(scores, bins, x) == 1


def piloted(z: Array, labels: Array, epsilon: float, rng: Rng) -> Rule:
    """Return the rule of `pilot`."""
    line, table = (round(end * len(z)) for end in (LINE_END, TABLE_END))
    rules = (
        plain(z[:line], labels[:line], epsilon, rng, "mean"),
        counts(z[line:table], labels[line:table], epsilon, rng),
    )
    z, truth, keep = z[table:], labels[table:] > 0, BinaryRR(epsilon=epsilon).keep
    right = np.array([rule(z) == truth for rule in rules])
    told = np.where(rng.random(len(z)) < keep, right, ~right)
    judged = rng.permutation(len(z)) % 2
    return rules[int(told[1][judged == 1].mean() > told[0][judged == 0].mean())]


def mean_errors(law: Law, epsilon: float) -> dict[str, float]:
    """Return the mean error in % of every rule."""
    found: dict[str, list[float]] = {}
    for repeat in range(REPEATS):
        rng = np.random.default_rng([law.seed, repeat, round(10 * epsilon)])
        n, _, volunteers = law.sizes
        (z, labels), (new, truth) = law.clients(rng, n), law.clients(rng, TEST)
        rest = z, labels, epsilon, rng
        rules = {"direct": plain(*rest)}
        if law.kind == "pilot":
            rules |= {"counts": counts(*rest), "pilot": piloted(*rest)}
        else:
            public, _ = law.clients(rng, volunteers)
            rules["whitened"] = whitened(*rest, public)
        rules["constant"] = as_rule((np.zeros(z.shape[1]), labels.mean()))
        rules["clean"] = as_rule(ridge_logistic(z, (labels > 0).astype(np.int64)))
        for name, rule in rules.items():
            wrong = 100 * float(np.mean(rule(new) != (truth > 0)))
            found.setdefault(name, []).append(wrong)
    return {name: float(np.mean(errors)) for name, errors in found.items()}


def cells(half: str, *, quick: bool, kind: str = "whitened") -> Iterator[Cell]:
    """Yield the cells of one half: each law at two budgets."""
    for seed in seeds(half, COUNTS[quick]):
        law = Law(kind, seed)
        for epsilon in (2.0, 5.0) if kind == "pilot" else (0.5, 1.0):
            errors = mean_errors(law, epsilon)
            name = f"{kind} {law.shape}"
            yield Cell(name, seed, epsilon, errors[kind], kind, errors)


pilots = partial(cells, kind="pilot")
