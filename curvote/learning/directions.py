"""Linear classifiers from noised directions: shrinkage, discriminants, gradients.

- A second moment M is read as a centre and a spread around it, M = (M_00, M_00 c';
  M_00 c, C + M_00 c c'), and each part is shrunk towards what is public: M_00 to its
  value for centred z, c to 0, the diagonal of C to its mean, its other entries to 0,
  each by the positive part of 1 - noise energy / observed energy (James & Stein 1961).
  Eigenvalues of C stay above those of noise alone.
- The slopes: ridge regression with the ridge of an empirical Bayes prior. The
  intercept is shrunk by itself, since it is known whenever classes are unequal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import UserError
from curvote.curves import direction
from curvote.learning.sums import MessageSums, SumForm, bits_below, exact_mean
from curvote.mechanisms.privunit import (
    OneOf,
    PrivUnit,
    one_of_variance,
    privunit_variance,
)
from curvote.wire.strict_json import canonical_json

Array = NDArray[np.float64]

# The noise of a symmetric matrix has eigenvalues up to sqrt(2 d v) (Wigner 1958).
EDGE = 0.75
# A wrong centre spoils the slopes, so it is believed where it stands out clearly.
DOUBT_CENTRE, DOUBT_CORNER = 2.5, 4.0
# A signal is taken to be at least this part of the noise that hides it.
LEAST_SLOPES, LEAST_INTERCEPT = 0.1, 1.0
# No direction is taken to be narrower than this part of the mean.
NARROWEST = 0.05


@dataclass(frozen=True)
class SecondMoment:
    """Second moment M by its parts: corner M_00, centre c, scatter C."""

    corner: float
    centre: Array
    around: Array

    @property
    def matrix(self) -> Array:
        """The second moment matrix M (p, p)."""
        first = np.concatenate([[1.0], self.centre])
        matrix = self.corner * np.outer(first, first)
        matrix[1:, 1:] += self.around
        return np.asarray(matrix)


@dataclass(frozen=True)
class NoisyMoments:
    """Noised label moment (K - 1, p), its variance, and the second moment.

    ``by_class`` (K,) is the variance of a class's own moment, over the mean of all.
    """

    label: Array
    noise: float
    second: SecondMoment
    by_class: Array = field(default_factory=lambda: np.ones(1))

    @property
    def slopes(self) -> tuple[Array, float]:
        """The slope moment h_1 - c h_0 (d,) of two classes, and its variance."""
        label, centre = self.label[0], self.second.centre
        variance = self.noise * (1 + float(centre @ centre) / len(centre))
        return label[1:] - centre * label[0], variance


def shrink_second_moment(raw: Array, noise: float, public: Array) -> SecondMoment:
    """Return the shrunk parts of a noised second moment (p, p).

    ``noise`` is the variance of a coordinate, half of which an entry beside the
    diagonal has. M_00 stays within a factor 2 of its ``public`` value, and C's mean
    eigenvalue above a fifth of it.
    """
    d = len(public) - 1
    excess = raw[0, 0] - public[0]
    excess *= shrink_factor(np.array([excess]), DOUBT_CORNER * noise)
    corner = float(np.clip(public[0] + excess, public[0] / 2, 2 * public[0]))
    column = shrink_factor(raw[1:, 0], DOUBT_CENTRE * d * noise / 2) * raw[1:, 0]
    centre = column / corner
    around = raw[1:, 1:] - corner * np.outer(centre, centre)
    scatter = shrink_scatter(around, noise, float(public[1:].mean()) / 5)
    return SecondMoment(corner, centre, scatter)


def shrink_scatter(around: Array, noise: float, least: float) -> Array:
    """Return a noised scatter (d, d), shrunk to its mean, which is ``least`` or more.

    ``noise`` is as in `shrink_second_moment`.
    """
    d = len(around)
    mean = max(float(np.trace(around)) / d, least)
    deviation, beside = np.diag(around) - mean, around - np.diag(np.diag(around))
    diagonal = mean + shrink_factor(deviation, (d - 1) * noise) * deviation
    beside = shrink_factor(beside, d * (d - 1) * noise / 2) * beside
    values, vectors = np.linalg.eigh(np.diag(diagonal) + beside)
    floor = min(max(EDGE * np.sqrt(2 * d * noise), NARROWEST * mean), mean)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)


def shrink_factor(observed: Array, noise_energy: float) -> float:
    """Return max(0, 1 - noise energy / observed energy) (James & Stein 1961)."""
    energy = float((observed**2).sum())
    return 1 - noise_energy / energy if energy > noise_energy else 0.0


def solve_weights(moments: NoisyMoments) -> Array:
    """Return the weights w (p,) of two classes by empirical Bayes ridge.

    Slopes regress h_1 - c h_0 on C. A prior N(0, t C^-1) of theirs, with t from the
    energy that exceeds the noise, makes (C + ridge)^-1 (h_1 - c h_0) their posterior
    mean, ridge = noise tr(C) / excess. The intercept is h_0/M_00, shrunk, less
    c'slopes.
    """
    (label,), noise, second = moments.label, moments.noise, moments.second
    centre, d = second.centre, len(second.centre)
    penalty, _ = ridge_penalty(moments)
    slopes = np.linalg.solve(second.around + penalty * np.eye(d), moments.slopes[0])
    signal = _signal_energy(label[:1], noise, LEAST_INTERCEPT)
    constant = label[0] / second.corner * signal / (signal + noise)
    return np.concatenate([[constant - centre @ slopes], slopes])


def ridge_penalty(moments: NoisyMoments) -> tuple[float, float]:
    """Return the ridge of `solve`, and the noise variance of h_1 - c h_0."""
    moment, variance = moments.slopes
    signal = _signal_energy(moment, variance, LEAST_SLOPES)
    return variance * float(np.trace(moments.second.around)) / signal, variance


def _signal_energy(observed: Array, noise: float, least: float) -> float:
    """Return the energy above the noise's, at least a share of the latter."""
    hidden = len(observed) * noise
    return max(float((observed**2).sum()) - hidden, least * hidden)


# Class means that noise has moved scatter more, so no direction is left with less of
# the scatter within classes than this part of all.
LEAST_WITHIN = 0.5
# Class means are taken to differ by at least this part of the noise that hides them.
LEAST_SIGNAL = 0.1
# No class is taken to be rarer than this part of an equal share.
SMALLEST_CLASS_SHARE = 0.2


# With public shares: the energy of class means, over that of K - 1 directions that tell
# classes perfectly apart, is near each of these as likely as near any other. Both, and
# the next, were chosen on even seeds of benchmarks/court/clients.py.
PRIOR_ENERGIES = np.geomspace(0.001, 1, 11)
# E[u_0 | k] differs by class as far as lengths of records do: by this part of 1/K.
SHARE_MISFIT = 0.05


def discriminant_classifier(
    moments: NoisyMoments, s: float, balance: Sequence[float] | None = None
) -> tuple[Array, Array]:
    """Return coef (K, d) and intercept (K,) of the discriminant of z.

    ``moments`` holds H (K - 1, p), the variance of its numbers and the second moment;
    ``s`` is the constant beside z, ``balance`` the classes' shares where these are
    public. The prior of class means is then integrated out, so that what noise hides
    adds next to nothing to the larger class.
    """
    second, n_classes = moments.second, len(moments.label) + 1
    part = (n_classes - 1) / n_classes
    # In units of E[u_0]: pi_k times (1, z/s), less the mean of all over K.
    raw = (
        part
        * direction.simplex_codes(n_classes)
        @ moments.label
        / np.sqrt(second.corner)
    )
    noise = part**2 * moments.noise / second.corner
    if balance is None:
        uneven = shrink_factor(raw[:, 0], (n_classes - 1) * noise) * raw[:, 0]
        shares = np.maximum(1 + n_classes * uneven, SMALLEST_CLASS_SHARE)
        shares /= shares.sum()
    else:
        shares = np.asarray(balance) / np.sum(balance)
        squared, class_noise = (SHARE_MISFIT / n_classes) ** 2, noise * moments.by_class
        public = shares - 1 / n_classes
        raw[:, 0] = public + (raw[:, 0] - public) * squared / (squared + class_noise)
        shares = np.maximum(1 / n_classes + raw[:, 0], SMALLEST_CLASS_SHARE * shares)
        shares /= shares.sum()
    offsets = raw[:, 1:] - raw[:, :1] * second.centre
    variance = noise * (1 + float(second.centre @ second.centre) / len(second.centre))
    values, vectors = np.linalg.eigh(second.around / second.corner)
    whitener = vectors / np.sqrt(values)
    hidden = variance * moments.by_class[:, None] / values
    observed = offsets @ whitener
    if balance is None:
        # The posterior means of a normal prior, whose variance is estimated.
        excess = float(np.mean(observed**2 - hidden))
        signal = max(excess, LEAST_SIGNAL * float(hidden.mean()))
        means = observed * (signal / (signal + hidden)) / shares[:, None]
    else:
        # Of each prior variance t: pi m is normal of variance pi^2 t.
        variances = PRIOR_ENERGIES * (n_classes - 1) / len(values)
        spread = shares[:, None] * variances[:, None, None]
        total = spread * shares[:, None] + hidden
        fit = -part * (np.log(total) + observed**2 / total).sum(axis=(1, 2)) / 2
        weights = np.exp(fit - fit.max())
        means = observed * np.tensordot(weights / weights.sum(), spread / total, 1)
    if balance is not None and n_classes == 2:
        # P(k | z) by least squares: as good as a discriminant on even seeds of the
        # court, and less often behind the larger class where one is rare.
        coef, level = (shares[:, None] * means) @ whitener.T, shares
        return coef / s, level - coef @ second.centre
    between, vectors = np.linalg.eigh((means.T * shares) @ means)
    within = (vectors / np.maximum(1 - between, LEAST_WITHIN)) @ vectors.T
    rule = means @ within
    coef = rule @ whitener.T
    level = np.log(shares) - (rule * means).sum(axis=1) / 2
    return coef / s, level - coef @ second.centre


# Of two classes (coef (d,), intercept); a line for each of K more, (K, d) and (K,).
Line = tuple[Array, Any]


@dataclass(frozen=True)
class ReportMean:
    """The mean (size,) of ``n`` reports."""

    mean: Array
    n: int

    @classmethod
    def from_reports(cls, directions: Array) -> ReportMean:
        """Return the mean of reports (n, size); no report is a UserError."""
        return cls.from_shards([directions])

    @classmethod
    def from_shards(
        cls, shards: Iterable[Array], epsilon: float | None = None
    ) -> ReportMean:
        """Return the mean of reports in parts, which change no bit; nor does the order.

        Reports at ``epsilon`` are added in integers, as an intake adds them. Without
        it they are added as they are, row after row, as releases of before there were
        sums were, and as is quicker.
        """
        if epsilon is not None:
            return cls.from_sums(_sum_reports((({}, s) for s in shards), epsilon))
        total, n = None, 0
        for directions in shards:
            total = add_rows(total, directions)
            n += len(directions)
        if total is None or not n:
            raise UserError(_NO_REPORT)
        return cls(total / n, n)

    @classmethod
    def from_sums(cls, sums: MessageSums) -> ReportMean:
        """Return the mean of the only word of sums; of none: UserError."""
        if not sums.words:
            raise UserError(_NO_REPORT)
        (word,) = sums.words
        return cls(sums.mean(word), sums.n)

    def noise(self, epsilon: float) -> float:
        """Return the variance that privacy adds to each coordinate."""
        return privunit_variance(len(self.mean), epsilon) / self.n


_NO_REPORT = "no report has come; nothing can be learnt."


def _sum_reports(
    shards: Iterable[tuple[dict[str, int], Array]],
    epsilon: float,
    n_classes: int | None = None,
) -> MessageSums:
    """Return the sums of reports by word, (word, reports (n, size)) at a time."""
    sums = MessageSums()
    for word, reports in shards:
        if not len(reports):
            continue
        if not sums.words:
            bits = report_bits(reports.shape[1], epsilon, n_classes)
            sums = MessageSums(SumForm("direction", bits))
        sums.add_rows(canonical_json(word).decode(), reports)
    return sums


@lru_cache(maxsize=256)
def report_bits(size: int, epsilon: float, n_classes: int | None = None) -> int:
    """Return the bits that a report's numbers are added with: of `PrivUnit`.

    With ``n_classes`` of `OneOf`, whose reports have ``size`` numbers a class.
    """
    if n_classes is None:
        return bits_below(1 / PrivUnit(epsilon=epsilon, d=size).m)
    one_of = OneOf(epsilon=epsilon, d=size * n_classes, n_classes=n_classes)
    return bits_below(1 / one_of.m)


def add_rows(total: Array | None, rows: Array) -> Array:
    """Return a running sum (size,) with rows (n, size) added one by one."""
    rows_and_total = rows if total is None else np.vstack([total, rows])
    return np.asarray(rows_and_total.sum(axis=0))


def one_round_classifier(
    mean: ReportMean,
    directions: direction.Directions,
    epsilon: float,
    balance: Sequence[float] | None = None,
) -> Line:
    """Return coef and intercept of the classifier from one round's mean.

    ``balance`` are the classes' shares where these are public.
    """
    moments = estimate_moments(mean, directions, epsilon)
    return classifier_from_moments(moments, directions.intercept, balance)


def estimate_whitening(
    mean: ReportMean, directions: direction.Directions, epsilon: float
) -> direction.Whitening:
    """Return centre and whitening of z from a first round's mean.

    M is proportional to E[(s, z)(s, z)'] but for the lengths that u divides by, so the
    centre is s c, and the covariance s^2 C/M_00, whose inverse root is the matrix.
    """
    second, s = estimate_moments(mean, directions, epsilon).second, directions.intercept
    values, vectors = np.linalg.eigh(second.around * s**2 / second.corner)
    values = np.maximum(values, NARROWEST * float(values.mean()))
    root = (vectors / np.sqrt(values)) @ vectors.T
    return direction.Whitening(np.asarray(root), s * second.centre)


def two_round_classifier(
    means: tuple[ReportMean, ReportMean],
    whitening: direction.Whitening,
    directions: direction.Directions,
    epsilon: float,
    balance: Sequence[float] | None = None,
) -> Line:
    """Return coef and intercept of the classifier from two rounds' means.

    The first round's label moment is carried over to the second's coordinates, and
    both are averaged by the inverse of their noise.
    """
    first = estimate_moments(means[0], directions, epsilon)
    second = estimate_moments(means[1], directions.whitened, epsilon)
    s1, s2 = directions.intercept, directions.whitened.intercept
    # (s2, W (z - centre)) = B (s1, z); T = B / sqrt(tr(B M B')), as both sides are
    # divided by their lengths, in the mean of squares.
    transport = np.zeros((directions.p, directions.p))
    transport[0, 0] = s2 / s1
    transport[1:, 0] = -whitening.matrix @ whitening.centre / s1
    transport[1:, 1:] = whitening.matrix
    transport /= np.sqrt(np.trace(transport @ first.second.matrix @ transport.T))
    carried = first.noise * float((transport**2).sum()) / directions.p
    part = second.noise / (carried + second.noise)
    moved = np.array([part * transport @ row for row in first.label])
    label = moved + (1 - part) * second.label
    combined = NoisyMoments(label, part * carried, second.second)
    coef, constant = classifier_from_moments(combined, s2, balance)
    slopes = (whitening.matrix.T @ coef.T).T
    return slopes, constant - slopes @ whitening.centre


def estimate_moments(
    mean: ReportMean, directions: direction.Directions, epsilon: float
) -> NoisyMoments:
    """Return the noised moments that a round's mean estimates."""
    moments, noise = directions.moments(mean.mean), mean.noise(epsilon)
    second = estimate_second_moment(moments, noise, directions)
    return NoisyMoments(moments.label, noise / directions.share, second)


def estimate_second_moment(
    moments: direction.DirectionMoments, noise: float, directions: direction.Directions
) -> SecondMoment:
    """Return the shrunk second moment from the moments of reports."""
    public = public_moment(directions)
    if directions.share == 1:
        centre, scatter = np.zeros(directions.d), np.diag(public[1:])
        return SecondMoment(float(public[0]), centre, scatter)
    raw = direction.second_moment_matrix(moments.diagonal, moments.off)
    return shrink_second_moment(raw, noise * directions.second_scale**2, public)


def public_moment(directions: direction.Directions) -> Array:
    """Return the assumed diagonal (p,) of M for centred z."""
    squares = np.full(directions.p, directions.square)
    squares[0] = directions.intercept**2
    return np.asarray(squares / squares.sum())


def classifier_from_moments(
    moments: NoisyMoments, s: float, balance: Sequence[float] | None = None
) -> Line:
    """Return the classifier of z from the moments of (s, z)."""
    if len(moments.label) == 1 and balance is None:
        w = solve_weights(moments)
        return w[1:], float(w[0] * s)
    coef, intercept = discriminant_classifier(moments, s, balance)
    if len(moments.label) > 1:
        return coef, intercept
    return coef[1] - coef[0], float(intercept[1] - intercept[0])


@dataclass(frozen=True)
class BlockMeans:
    """The mean (K, size) of ``n`` reports, one row for each class."""

    mean: Array
    n: int

    @classmethod
    def from_sums(cls, sums: MessageSums, n_classes: int) -> BlockMeans:
        """Return the means from sums whose words name classes; of none: UserError."""
        if not sums.words:
            raise UserError(_NO_REPORT)
        names = (canonical_json({"named": k}).decode() for k in range(n_classes))
        zeros = [0] * len(next(iter(sums.words.values())))
        totals = [sums.words.get(name, zeros)[1:] for name in names]
        bits, n = sums.form.bits, sums.n
        return cls(np.array([exact_mean(total, n, bits) for total in totals]), n)

    @classmethod
    def from_shards(
        cls,
        shards: Iterable[tuple[NDArray[np.int64], Array]],
        n_classes: int,
        epsilon: float | None = None,
    ) -> BlockMeans:
        """Return the means of reports (n,), (n, size) in parts, which change no bit.

        ``epsilon`` is as in `ReportMean.from_shards`. No report is a UserError.
        """
        if epsilon is not None:
            parts = (
                ({"named": k}, directions[classes == k])
                for classes, directions in shards
                for k in range(n_classes)
            )
            return cls.from_sums(_sum_reports(parts, epsilon, n_classes), n_classes)
        sums: list[Array | None] = [None] * n_classes
        n = 0
        for classes, directions in shards:
            class_rows = [directions[classes == k] for k in range(n_classes)]
            sums = [add_rows(*pair) for pair in zip(sums, class_rows, strict=True)]
            n += len(classes)
        if not n:
            raise UserError(_NO_REPORT)
        return cls(np.array(sums) / n, n)

    def noise(self, epsilon: float) -> float:
        """Return the mean variance that privacy adds to a coordinate."""
        return one_of_variance(*self.mean.shape, epsilon) / self.n


def one_of_classifier(
    means: BlockMeans,
    directions: direction.Directions,
    epsilon: float,
    balance: Sequence[float] | None = None,
) -> Line:
    """Return coef and intercept of the classifier from the blocks' means."""
    moments = estimate_block_moments(means, directions, epsilon, balance)
    return classifier_from_moments(moments, directions.intercept, balance)


def estimate_block_moments(
    means: BlockMeans,
    directions: direction.Directions,
    epsilon: float,
    balance: Sequence[float] | None = None,
) -> NoisyMoments:
    """Return the noised moments that the blocks' means estimate.

    A class has the more noise the more often it is named, which ``balance`` says.
    """
    n_classes, v = len(means.mean), means.noise(epsilon)
    label = direction.simplex_codes(n_classes).T @ means.mean[:, : directions.p]
    label = label / np.sqrt(directions.share)
    label_noise = v / directions.share * n_classes / (n_classes - 1)
    moments = directions.moments(means.mean.sum(axis=0))
    second = estimate_second_moment(moments, n_classes * v, directions)
    by_class = np.ones(1)
    if balance is not None:
        size = n_classes * means.mean.shape[1]
        reports = OneOf(epsilon=epsilon, d=size, n_classes=n_classes)
        named = n_classes * reports.naming_chances(balance)
        # The mean of all is taken off: 1 - 2/K of its own noise, and 1/K of the mean.
        by_class = ((n_classes - 2) * named + 1) / (n_classes - 1)
    return NoisyMoments(label, label_noise, second, by_class)


# How much the energy of noise counts beside that of a clipped gradient of length C: as
# much as if the mean gradient had half of that length.
NOISE_WEIGHT = 4.0
# The part of the iterates that is averaged.
AVERAGED_PART = 0.5


def gradient_step(
    gradients: direction.Gradients, reports: Array, epsilon: float, rate: float
) -> direction.Gradients:
    """Return the gradients at the coefficients of the next round.

    ``reports`` (n, size) are those of one round; none leave the coefficients where they
    are. x has p numbers and a length about 1, so a step is ``rate`` mean gradients
    times the number of coefficients, shortened by the noise that is known to be there.
    """
    if not len(reports):
        return gradients
    count = gradients.coef.size
    noise = count * privunit_variance(gradients.size, epsilon) / len(reports)
    step = rate * count / np.sqrt(1 + NOISE_WEIGHT * noise)
    mean = gradients.gradient(reports.mean(axis=0))
    return replace(gradients, coef=gradients.coef + step * mean)


def average_iterates(iterates: Sequence[direction.Gradients]) -> direction.Gradients:
    """Return the mean of the last iterates, ``AVERAGED_PART`` of them."""
    first = min(int(len(iterates) * (1 - AVERAGED_PART)), len(iterates) - 1)
    coef = np.mean([iterate.coef for iterate in iterates[first:]], axis=0)
    return replace(iterates[-1], coef=coef)
