"""What liars do to each protocol: the error against their share, at the worst lie.

Run with ``python -m benchmarks.bench_liars [--runs R]``. N = 3000 clients of d = 4
numbers, epsilon 1; the best rule errs on 10 %, in two worlds: one cloud of records with
a logistic label (that of docs/choosing.md), and two normal groups. A liar sends what
the intake accepts (a possible message) and knows the true direction: a report of full
length, the far corner of the box, the bit. Where it points is searched, for each
protocol and share: against the signal and across it (which turns the rule where too few
lie to reverse it), in the intercept, and in the second moment where one is asked for.
The search has worlds of its own (`SEARCHED`), or the worst of many were the luckiest.

Other ways to decode `direct mean` stand below, each against liars who all send the same
vector, against the signal or across it, and against liars who hide anywhere in the half
space against the signal.

Fails where a twentieth of liars takes more than 5 points from `votes`, or where cutting
off what is too rare to be honest does not help `mrma`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.special import ndtr, ndtri

from benchmarks.choosing_world import DIRECTIONS, World, repeated
from benchmarks.history import record
from curvote.advise.direct import STRONG, Signal
from curvote.client.report import (
    DirectionReporter,
    Reporter,
    candidate_scores,
    draw_votes,
)
from curvote.curves.direction import Directions
from curvote.learning import learners
from curvote.learning.directions import (
    Line,
    ReportMean,
    estimate_whitening,
    one_round_classifier,
    two_round_classifier,
)
from curvote.learning.votes import (
    average_classifiers,
    averaging_weights,
    draw_subsets,
    estimate_utility,
    reversal_mask,
    reversed_utility,
)
from curvote.mechanisms.privunit import PrivUnit
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.messages.arms import FIRST_ROUND_SHARE, make_directions
from curvote.theory import UtilityPrior, recommend

Array = NDArray[np.float64]
Decoder = Callable[[Array, float], Array]

N, D, EPSILON = 3000, 4, 1.0
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1)
MOST_LOST = 0.05  # a point of error for each point of liars
# The search: lies tried at random in two steps (anywhere, then about the worst three),
# each in so many worlds, and the worst five once more, in further ones.
TRIED, NEAR, FEW, FINALISTS, MANY = 60, 20, 6, 5, 24
SEARCHED = 1000  # the number of its first world: the reported ones begin at 0
APART = float(ndtri(1 - STRONG))  # each group's mean from the middle


class Groups(World):
    """Two normal groups whose means lie ``APART`` on both sides of the origin."""

    def clients(self, n: int) -> tuple[Array, Array]:
        labels = np.where(self.rng.random(n) < self.signal.positive, 1, -1)
        x = self.rng.standard_normal((n, self.d))
        return x + APART * labels[:, None] * self.slant, labels

    def error(self, rule: Line) -> float:
        length = np.linalg.norm(rule[0])
        reach, over = APART * float(rule[0] @ self.slant), rule[1]
        share = self.signal.positive
        right = share * ndtr((reach + over) / length)
        return float(1 - right - (1 - share) * ndtr((reach - over) / length))

    def error_of_tanh(self, rule: Line) -> float:
        x, labels = self.clients(20_000)
        return float(np.mean((np.tanh(x) @ rule[0] + rule[1] > 0) != (labels > 0)))


# Weights: against the signal, across it, the intercept; and of the second moment the
# entries signal x signal, signal x across, intercept x signal, intercept x intercept.
Lie = tuple[float, ...]
LABEL, SECOND = 3, 4
PLAIN: tuple[Lie, ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))


@dataclass(frozen=True)
class Pull:
    """A lie in a world: a direction (d,) of slopes, an intercept, a second moment."""

    slope: Array
    intercept: float
    axes: Array  # (3, d + 1): the intercept's, the signal's, the one across
    second: Lie = ()

    @classmethod
    def of(cls, world: World, lie: Lie) -> Pull:
        other = world.rng.standard_normal(D)
        other -= (other @ world.slant) * world.slant
        other /= np.linalg.norm(other)
        axes = np.zeros((3, D + 1))
        axes[0, 0], axes[1, 1:], axes[2, 1:] = 1, world.slant, other
        slope = -lie[0] * world.slant + lie[1] * other
        return cls(slope, lie[2], axes, lie[LABEL:])

    def within(self, matrix: Array) -> Pull:
        """Return the same in the coordinates of a second round."""
        axes = self.axes.copy()  # E[y W z] is W times E[y z]
        axes[1:, 1:] = axes[1:, 1:] @ matrix.T
        return Pull(matrix @ self.slope, self.intercept, axes, self.second)


Run = Callable[[World, float, Pull], float]


def liars(world: World, n: int, share: float) -> NDArray[np.int64]:
    """Return the rows of the liars among ``n``."""
    return np.asarray(world.rng.permutation(n)[: round(n * share)])


def lie_of(given: Directions, pull: Pull) -> Array:
    """Return the unit vector that is a lie."""
    vector = np.zeros(given.size)
    vector[: given.p] = [pull.intercept, *pull.slope]
    if given.share < 1 and pull.second:
        one, x, y = pull.axes
        entries = ((x, x), (x, y), (one, x), (one, one))
        matrix = sum(
            weight * (np.outer(a, b) + np.outer(b, a)) / 2
            for weight, (a, b) in zip(pull.second, entries, strict=True)
        )
        # As `curvote.curves.direction` writes it.
        above = matrix[np.triu_indices(given.p, 1)]
        diagonal = helmert(given.p) @ np.diag(matrix)
        vector[given.p :] = [*diagonal, *(np.sqrt(2) * above)]
    return np.asarray(vector / np.linalg.norm(vector))


def directions(
    world: World, given: Directions, clients: tuple[Array, Array], told: Array
) -> Array:
    """Return reports, some of them lies (k, size) of full length."""
    reporter = DirectionReporter.build(given, EPSILON)
    sent = reporter.release(*clients, world.entropy, study=True)
    sent[world.rng.permutation(len(sent))[: len(told)]] = told / reporter.mechanism.m
    return sent


def direct(arm: str, world: World, share: float, pull: Pull) -> float:
    given, (z, labels) = make_directions(arm, D, "standard", "auto"), world.clients(N)

    def mean(part: slice, z: Array, given: Directions, pull: Pull) -> ReportMean:
        told = np.tile(lie_of(given, pull), (round(len(z) * share), 1))
        return ReportMean.from_reports(
            directions(world, given, (z, labels[part]), told)
        )

    if arm != "two":
        return world.error(
            one_round_classifier(mean(slice(N), z, given, pull), given, EPSILON)
        )
    first, rest = (
        slice(round(FIRST_ROUND_SHARE * N)),
        slice(round(FIRST_ROUND_SHARE * N), N),
    )
    one = mean(first, z[first], given, pull)
    made = estimate_whitening(one, given, EPSILON)
    other = mean(rest, made.apply(z[rest]), given.whitened, pull.within(made.matrix))
    return world.error(two_round_classifier((one, other), made, given, EPSILON))


def elected(
    world: World,
    voters: tuple[Array, Array],
    drawn: tuple[Array, Array],
    lies: tuple[float, Pull],
    cutoff: float,
) -> Line:
    """Return what noised bits make of classifiers; liars speak for those they like."""
    (z, labels), count = voters, len(drawn[0])
    judge = world.rng.permutation(np.arange(len(z)) % count)
    right = draw_votes(
        candidate_scores(z, *drawn, judge), labels, EPSILON, world.entropy
    )
    mine = liars(world, len(z), lies[0])
    liked = drawn[0] @ lies[1].slope + drawn[1] * lies[1].intercept > 0
    right[mine] = liked[judge[mine]]
    n = np.bincount(judge, minlength=count)
    positive = np.bincount(judge, weights=right, minlength=count)
    utility = estimate_utility(positive, n, BinaryRR(epsilon=EPSILON).keep)
    flipped = reversal_mask(positive, n)
    weight, _ = averaging_weights(
        reversed_utility(utility.value, flipped), cutoff, "soft"
    )
    return average_classifiers(*drawn, np.where(flipped, -weight, weight))


def votes(world: World, share: float, pull: Pull) -> float:
    w = world.rng.standard_normal((DIRECTIONS, D + 1))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    s = make_directions("mean", D, "standard", "auto").intercept
    drawn = w[:, 1:], s * w[:, 0]
    return world.error(elected(world, world.clients(N), drawn, (share, pull), 0.5))


def mrma(
    plan: dict[str, Any], cut: bool, world: World, share: float, pull: Pull
) -> float:
    """Return the error where liars report the farthest corner, and vote so.

    What pulls the intercept is that more of them name one class than the other.
    """
    (z, labels), n = world.clients(N), plan["n_train"]
    z = np.tanh(z)
    reporter, noise = Reporter.build(D, EPSILON, "laplace", "equal"), world.entropy
    sent, named = reporter.release(z[:n], labels[:n], noise, noise, study=True)
    mine = liars(world, n, share)
    positive = np.arange(len(mine)) < (1 + pull.intercept) / 2 * len(mine)
    named[mine] = np.where(positive, 1.0, -1.0)
    # About as far as a possible message goes.
    farthest = reporter.features.tail_bound(1e-300)
    sent[mine] = named[mine, None] * np.sign(pull.slope) * farthest
    sent = reporter.trimmed(sent) if cut else sent
    rows = draw_subsets(world.rng, n, plan["n_learners"], plan["n_per_learner"])
    fits = learners.fit("centroid", sent[rows], named[rows])
    voters, drawn = (z[n:], labels[n:]), (fits.coef, fits.intercept)
    rule = elected(world, voters, drawn, (share, pull), plan["cutoff"])
    return world.error_of_tanh(rule)


def majority(world: World, share: float, pull: Pull) -> float:
    """Return the error where classes are 70 : 30: else nothing could be turned."""
    positive = world.rng.random(N) < 0.7
    noised = BinaryRR(epsilon=EPSILON).randomize(2.0 * positive - 1, world.entropy)
    noised[liars(world, N, share)] = -1
    return 0.3 if noised.sum() > 0 else 0.7


def decoded(
    decoder: Decoder, lie: str, world: World, share: float, pull: Pull
) -> float:
    """Return the error of `direct mean` with another decoder of its reports."""
    given, (z, labels) = (
        make_directions("mean", D, "standard", "auto"),
        world.clients(N),
    )
    away = lie_of(given, pull)
    told = np.tile(away, (round(N * share), 1))
    if lie == "half":
        told = world.rng.standard_normal(told.shape)
        told *= np.sign(told @ away)[:, None]
        told /= np.linalg.norm(told, axis=1, keepdims=True)
    sent = directions(world, given, (z, labels), told)
    w = decoder(sent, EPSILON)
    return world.error((w[1:], float(w[0] * given.intercept)))


def mean(sent: Array, epsilon: float) -> Array:
    """The mean: what `direct mean` takes."""
    return np.asarray(sent.mean(axis=0))


def clipped(sent: Array, epsilon: float) -> Array:
    """The mean of coordinates, each cut off at half of a report's length."""
    most = np.linalg.norm(sent[0]) / 2
    return np.asarray(np.clip(sent, -most, most).mean(axis=0))


def median(sent: Array, epsilon: float) -> Array:
    """The median of each coordinate."""
    return np.asarray(np.median(sent, axis=0))


def blocks(sent: Array, epsilon: float) -> Array:
    """The geometric median of the means of 60 blocks (Minsker 2015)."""
    means = sent.reshape(60, -1, sent.shape[1]).mean(axis=1)
    at = means.mean(axis=0)
    for _ in range(50):
        near = 1 / np.maximum(np.linalg.norm(means - at, axis=1), 1e-9)
        at = near @ means / near.sum()
    return np.asarray(at)


def cap(sent: Array, epsilon: float) -> Array:
    """The direction whose cap holds most reports: each counts as one, however far."""
    mechanism = PrivUnit(epsilon=epsilon, d=sent.shape[1])
    unit, gamma = sent * mechanism.m, mechanism.cap.gamma
    rng, best = np.random.default_rng(0), unit.mean(axis=0)
    for width in (4.0, 1.0, 0.3, 0.1):
        near = width * rng.standard_normal((400, len(best)))
        tried = best / np.linalg.norm(best) + near
        tried /= np.linalg.norm(tried, axis=1, keepdims=True)
        # Caps are smoothed, or chance alone would choose among many near ones.
        soft = np.tanh((unit @ tried.T - gamma) / 0.3).mean(axis=0)
        best = tried[int(soft.argmax())]
    return np.asarray(best)


def once(run: Run, kind: type[World], share: float, lie: Lie, seed: int) -> float:
    world = kind.draw(Signal(STRONG), D, seed)
    return run(world, share, Pull.of(world, lie))


def worst(run: Run, kind: type[World], share: float, size: int) -> Lie:
    """Return the worst of the lies tried, with so many weights each.

    The same lies are tried in the same worlds, whatever the protocol.
    """
    rng = np.random.default_rng(SEARCHED)

    def ranked(lies: Iterable[Lie], first: int, worlds: int) -> list[Lie]:
        def error(lie: Lie) -> float:
            seeds = range(first, first + worlds)
            return float(np.mean([once(run, kind, share, lie, s) for s in seeds]))

        return sorted(dict.fromkeys(lies), key=error, reverse=True)

    def unit(weights: Array) -> Lie:
        return tuple((weights / np.linalg.norm(weights)).tolist())

    # Some weights are 0: in many numbers a lie in few of them would never be drawn.
    drawn = rng.standard_normal((TRIED, size)) * (rng.random((TRIED, size)) < 0.6)
    plain = [lie + (0.0,) * (size - LABEL) for lie in PLAIN]
    anywhere = ranked([*plain, *(unit(d) for d in drawn if d.any())], SEARCHED, FEW)
    about = np.repeat(anywhere[:3], -(-NEAR // 3), axis=0)
    near = about + 0.3 * rng.standard_normal(about.shape)
    best = ranked([*anywhere[:3], *map(unit, near)], SEARCHED + FEW, FEW)
    return ranked([*plain, *best[:FINALISTS]], SEARCHED + 2 * FEW, MANY)[0]


def row(
    name: str, run: Run, runs: int, kind: type[World], size: int = 0
) -> list[float]:
    """Print and return the mean error for each share of liars.

    Of the worst lie of ``size`` weights that was found; 0: the worse of two plain ones.
    """
    found: list[float] = []
    lies: list[Lie] = []
    for share in SHARES:
        searched = size and share
        tried = [worst(run, kind, share, size)] if searched else PLAIN
        errors = [
            repeated(partial(once, run, kind, share, lie), runs)[0] for lie in tried
        ]
        found.append(max(errors))
        lies += tried if searched else []
    cells = " ".join(f"{100 * error:6.1f}" for error in found)
    print(f"{name:28} {cells}", flush=True)
    for lie in lies:
        print("    a lie: " + " ".join(f"{weight:5.2f}" for weight in lie), flush=True)
    return found


def table(kind: type[World], runs: int) -> tuple[float, float]:
    """Print what happens in a world; return what votes lose, and a cut of `mrma`."""
    title = "two groups" if kind is Groups else "one cloud"
    print(f"\n{title:28} " + " ".join(f"{100 * share:4g} %" for share in SHARES))
    for arm in ("mean", "joint", "two"):
        size = LABEL + SECOND * (arm != "mean")
        row(f"direct {arm}", partial(direct, arm), runs, kind, size)
    voted = row("votes", votes, runs, kind, LABEL)
    plan = asdict(recommend(N, D, EPSILON, UtilityPrior(1 - STRONG)))
    bare = row("mrma, nothing cut off", partial(mrma, plan, False), runs, kind, LABEL)
    cut = row("mrma", partial(mrma, plan, True), runs, kind, LABEL)
    row("majority (of 70 : 30)", majority, runs, kind)
    for decoder in (mean, clipped, median, blocks, cap):
        for lie in ("point", "half"):
            run = partial(decoded, decoder, lie)
            row(f"  decoded by {decoder.__name__}, {lie}", run, runs, kind)
    return voted[3] - voted[0], cut[2] - bare[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    given = parser.parse_args()
    print(f"error in %, by the share of liars; N = {N}, d = {D}, epsilon = {EPSILON:g}")
    found = [table(kind, given.runs) for kind in (Groups, World)]
    lost, cut = (max(each) for each in zip(*found, strict=True))
    sizes = {"votes lose at 5 %": lost, "mrma loses by its cutoff": cut}
    bounds = dict(zip(sizes, (MOST_LOST, 0.0), strict=True))
    return record("liars", {}, sizes=sizes, bounds=bounds)


if __name__ == "__main__":
    sys.exit(main())
