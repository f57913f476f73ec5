"""Profile of a model: what is known of it, and what public records weigh in a prior.

To what is known belong boxes around records in which the answer certainly stays (Zheng
& Hu, section 5.1): first the radius, then each side on its own as far as it stays.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base.entropy import Entropy, SystemEntropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms.base import Mixture
from curvote.systems.utility.method import deployment
from curvote.systems.utility.method.engines import base

# Of the bounds' widths: sides, and the radius, are at most so much short.
SIDE_PRECISION = 2.0**-12
RADIUS_PRECISION = 2.0**-16
# Its sides grow by such steps first, also a share of the widths.
FIRST_STEP = 0.25

Mask = NDArray[np.bool_]
# Whether the boxes ``low`` (n, s) to ``high`` hold; anything where it is not asked.
HoldsTest = Callable[[FloatArray, FloatArray, Mask], Mask]


@dataclass(frozen=True)
class Box:
    """Closed box for each of n records, in the model's units, within the bounds.

    ``bisect_radius`` (n,) is a share of the bounds' widths, the same in every
    direction; 1 holds everything. ``low`` and ``high`` (n, s) are the hyperrectangle,
    the record itself where nothing holds. ``certified`` (n,): the answer certainly is
    the clean one everywhere inside. ``queries`` (n,) counts the answers asked for.
    """

    radius: FloatArray
    low: FloatArray
    high: FloatArray
    certified: Mask
    queries: NDArray[np.int64]


def certify_box(
    surface: base.Surface,
    values: FloatArray,
    *,
    bounds: FloatArray,
    precision: float = SIDE_PRECISION,
) -> Box:
    """Return the boxes around ``values`` (n, s) in which answers certainly stay.

    ``bounds`` (s, 2). Only boxes for which ``surface.holds`` are kept, so a surface
    that cannot tell costs size and never certainty. NotImplementedError from a surface
    that cannot certify anything is passed on (``box_by_trials`` is for those).
    """
    inner = np.clip(values, *bounds.T)
    point = surface.holds(inner, inner)

    def holds_inside(low: FloatArray, high: FloatArray, which: Mask) -> Mask:
        # What is not asked costs least as a point.
        tested = (which & point)[:, None]
        ends = np.where(tested, low, inner), np.where(tested, high, inner)
        return point & surface.holds(*ends)

    grown = grow_boxes(holds_inside, inner, bounds, (RADIUS_PRECISION, precision))
    return Box(*grown, point, np.zeros(len(values), dtype=np.int64))


def grow_boxes(
    holds: HoldsTest,
    values: FloatArray,
    bounds: FloatArray,
    precisions: tuple[float, float],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return radius (n,), low and high (n, s) of boxes that ``holds`` accepts.

    First the largest ball around ``values``, by bisection to the first of the
    ``precisions``. Then each side in turn takes steps of `FIRST_STEP` widths until none
    of a box's sides can; then the step is halved, down to the second precision, and
    each side takes one at most: two would have been a step before. The radius is that
    of the largest ball within the box; a side at the bounds stands in no way.
    """
    n, widths = len(values), np.diff(bounds)[:, 0]

    def balls(radius: FloatArray) -> FloatArray:
        reach, (low, high) = radius[:, None] * widths, bounds.T
        ends = np.maximum(values - reach, low), np.minimum(values + reach, high)
        return np.stack(ends, axis=-1)

    accepted, refused = np.zeros(n), np.ones(n)
    every = np.ones(n, dtype=bool)
    for _ in range(math.ceil(-math.log2(precisions[0]))):
        middle = (accepted + refused) / 2
        ends = balls(middle)
        holding = holds(ends[..., 0], ends[..., 1], every)
        accepted = np.where(holding, middle, accepted)
        refused = np.where(holding, refused, middle)
    ends, step = balls(accepted), np.full(n, FIRST_STEP)
    open_ = np.ones(ends.shape, dtype=bool)
    while (step >= precisions[1]).any():
        first = step == FIRST_STEP
        for i, end in np.ndindex(ends.shape[1:]):
            reach = (2 * end - 1) * (step * open_[:, i, end]) * widths[i]
            moved_end = np.clip(ends[:, i, end] + reach, *bounds[i])
            moves = moved_end != ends[:, i, end]
            if moves.any():
                tried = ends.copy()
                tried[:, i, end] = moved_end
                moves &= holds(tried[..., 0], tried[..., 1], moves)
                ends[moves, i, end] = moved_end[moves]
            open_[:, i, end] &= moves & first
        done = ~open_.any(axis=(1, 2))
        open_[done] = True
        step = np.where(done, step / 2, step)
        step[step < precisions[1]] = 0
    share = np.abs(ends - values[..., None]) / np.diff(bounds)
    reach = np.where(ends == bounds, 1.0, share).min(axis=(1, 2))
    return np.asarray(reach), ends[..., 0], ends[..., 1]


# Of theta: an output at exactly that distance counts, whatever the rounding.
_ROUNDING = 1e-12


def certified_bound(channel: base.Channel, values: FloatArray, box: Box) -> FloatArray:
    """Return P(the model sees a point of the certified box), (n,).

    Outputs that are clipped to the bounds count where they are moved to. 0 where no
    box is certified; NaN where the channel's law is no mixture of products.
    """
    law = channel.law(values)
    if law is None:
        return np.full(len(values), np.nan)
    return np.where(box.certified, law.box(box.low, box.high), 0.0)


def concentration_probability(law: Mixture, x: FloatArray, theta: float) -> FloatArray:
    """Return P(every coordinate of the output is within ``theta`` of x), (n,).

    ``x`` is (n, d), in the law's units (Zheng & Hu, proposition 1 and figure 4).
    """
    reach = theta * (1 + _ROUNDING)
    return law.box(x - reach, x + reach)


# Rows that are asked about in one call of ``predict``.
_MOST_ROWS = 1 << 17


# Zheng & Hu, definition 8: the share of wrong answers that a box may have, and the
# risk of a test. It is taken seven times for a radius, at the same risk each.
TAU = 0.01
OMEGA = 0.05
# What a tested box is found to, a share of the bounds' widths, as in the paper.
TRIAL_PRECISION = 0.01


@dataclass(frozen=True)
class TrialRule:
    """Rule of a trial: ``number`` uniform points, of which ``most`` may differ.

    After ``trials`` of a record no further box is accepted.
    """

    number: int
    most: int
    trials: float = math.inf


def make_trial(tolerance: float, risk: float, trials: int) -> TrialRule:
    """Return the fewest points that show that at most ``tolerance`` differ.

    Where more differ, all agree with probability (1 - tolerance)^number at most
    (Clopper & Pearson 1934); that is ``risk`` over all ``trials``. For .01, .05 and one
    trial it takes 299 points.
    """
    number = math.log(risk / trials) / math.log1p(-tolerance)
    return TrialRule(math.ceil(number), 0, trials)


def box_by_trials(question: base.Question, entropy: Entropy) -> Box:
    """Return boxes in which at most `TAU` of all points get another answer.

    That is true of every box that was accepted for a record with probability
    1 - `OMEGA`. It speaks of points that are uniform in the box, not of a mechanism:
    nothing is certified, and no bound follows.
    """
    halvings = math.ceil(-math.log2(TRIAL_PRECISION))
    trials = halvings * (1 + 4 * len(question.bounds))
    return grow_by_trials(question, entropy, make_trial(TAU, OMEGA, trials))


def grow_by_trials(
    question: base.Question, entropy: Entropy, trial_rule: TrialRule
) -> Box:
    """Return the boxes that pass a trial each time that they grow."""
    model, bounds, number = question.model, question.bounds, trial_rule.number
    clean = base.predict_batched(model, question.records)
    # Each record's own answer comes on top of these.
    queries = np.zeros(len(clean), dtype=np.int64)
    inner = np.clip(question.values, *bounds.T)
    remaining = np.full(len(inner), trial_rule.trials)

    def passes(low: FloatArray, high: FloatArray, which: Mask) -> Mask:
        passed = np.zeros(len(low), dtype=bool)
        places = np.flatnonzero(which & (remaining > 0))
        remaining[places] -= 1
        queries[places] += number
        for i in places:
            wrong = 0
            for start in range(0, number, _MOST_ROWS):
                size = min(_MOST_ROWS, number - start)
                rows = np.repeat(question.records[[i]], size, axis=0)
                # Uniform numbers in [0, 1), of 53 bits.
                words = entropy.words(size * low.shape[1]) >> np.uint64(11)
                share = words.reshape(size, -1) * 2.0**-53
                rows[:, list(question.sensitive)] = low[i] + (high[i] - low[i]) * share
                answers = base.predict_batched(model, rows)
                wrong += int(np.count_nonzero(answers != clean[i]))
            passed[i] = wrong <= trial_rule.most
        return passed

    precisions = TRIAL_PRECISION, TRIAL_PRECISION
    grown = grow_boxes(passes, inner, bounds, precisions)
    return Box(*grown, np.zeros(len(inner), dtype=bool), queries)


@dataclass(frozen=True)
class RobustBox:
    """Closed box ``low`` (s,) to ``high`` (s,) around a record, in model units.

    ``radius`` is a share of the bounds' widths, the same in every direction.
    ``certified``: the answer certainly stays everywhere inside. Where it is not, at
    most a hundredth of all points inside get another answer, at a risk of .05.
    """

    radius: float
    low: FloatArray
    high: FloatArray
    certified: bool
    queries: int


def robust_box(
    model: Any,
    record: ArrayLike,
    *,
    sensitive: Sequence[int],
    bounds: ArrayLike,
    entropy: Entropy | None = None,
) -> RobustBox:
    """Return the box in which the ``sensitive`` features of a record can move.

    Parameters
    ----------
    model : object
        A fitted classifier, or a function that answers.
    record : array (D,)
        In the model's units.
    sensitive : sequence of int
        The columns that may move, s of them.
    bounds : array (s, 2)
        One (low, high) for each, public.
    entropy : Entropy or None, default=None
        Of random points, where the kind of model is unknown; None is the operating
        system's. Nothing is random where it is known.

    Returns
    -------
    RobustBox
        In which the answer stays.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.1], [0.2], [0.8], [0.9]]), [0, 0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> box = robust_box(model, [0.1], sensitive=[0], bounds=[(0, 1)])
    >>> print(box.high.round(2), box.certified)
    [0.5] True
    """
    question = deployment.make_setting(
        model, np.atleast_2d(record), sensitive=sensitive, bounds=bounds
    ).question
    engine, _ = base.choose_engine(question)
    box = certified_box(engine.surface(question), question)
    if box is None:
        box = box_by_trials(question, entropy or SystemEntropy())
    radius, certified = float(box.radius[0]), bool(box.certified[0])
    return RobustBox(radius, box.low[0], box.high[0], certified, int(box.queries[0]))


def certified_box(surface: base.Surface, question: base.Question) -> Box | None:
    """Return the certified boxes of records, None where the surface cannot tell."""
    try:
        return certify_box(surface, question.values, bounds=question.bounds)
    except NotImplementedError:
        return None


def query_count(omega: float = OMEGA, tau: float = TAU / 2) -> int:
    """Return ln(2/omega) / (2 tau^2), rounded up (theorem 1): 73,778."""
    return math.ceil(math.log(2 / omega) / (2 * tau * tau))


def published_boxes(question: base.Question, entropy: Entropy) -> Box:
    """Return the boxes of the published procedure (section 5.1).

    A box passes where at most tau/2 of 73,778 uniform points get another answer; the
    radius takes seven tests, 516,446 queries. ``certified`` is false throughout.
    """
    number = query_count()
    trial_rule = TrialRule(number, math.floor(number * TAU / 2))
    return grow_by_trials(question, entropy, trial_rule)


def published_claim(channel: base.Channel, values: FloatArray, box: Box) -> FloatArray:
    """Return the published claim (1 - omega)(1 - tau) P(noise in box), (n,).

    Outputs beyond the bounds are lost, though the model would see them clipped. The
    paper's figures leave the two factors away, .9405 together. NaN where the
    mechanism's law is no mixture of products.
    """
    law = replace(channel, clip=False).law(values)
    if law is None:
        return np.full(len(values), np.nan)
    return (1 - OMEGA) * (1 - TAU) * law.box(box.low, box.high)


# How far alike reaches, in standard deviations of the public records' other features.
REACHES = (1.0, 0.6, 0.4, 0.3)
# What a record that is not alike weighs still.
_UNLIKE_WEIGHT = 1e-3
# Standard errors by which it must guess better than a prior of all alike.
CLEAR_ERRORS = 2.0
# Public records on which the reach is chosen.
_SAMPLE_SIZE = 400


def prior_weights(setting: deployment.Setting) -> FloatArray | None:
    """Return the weight of each public record for each record, (n, m).

    exp(-distance^2 / (2 reach^2)), the distance a root mean square over the other
    features, each in public standard deviations. The reach is the one of `REACHES`
    with which public records' answers are guessed best from the other public records,
    nothing being sent; None, all weigh alike, where no reach does clearly better. The
    server sees the other features as they are, and they tell about the sensitive ones
    (who is married is rarely a child): using them costs no epsilon.
    """
    public = setting.public
    if public is None:
        return None
    insensitive = np.setdiff1d(np.arange(public.shape[1]), setting.sensitive)
    columns = [int(column) for column in insensitive if np.ptp(public[:, column]) > 0]
    if not columns or len(public) < 2:
        return None
    sample = public[:_SAMPLE_SIZE]
    squared = _distances(sample[:, columns], public[:, columns])
    np.fill_diagonal(squared, np.inf)  # no record is its own prior
    votes, clean = setting.put(sample), setting.answers(sample)
    guesses = []
    for reach in (np.inf, *REACHES):
        # Whether the prior's likeliest class is each record's clean one.
        weights = _kernel_weights(squared, reach)
        scores = [((votes == c) * weights).sum(axis=1) for c in range(votes.max() + 1)]
        guesses.append(np.asarray(np.argmax(scores, axis=0) == clean))
    plain, *guesses = guesses
    best = int(np.argmax([right.sum() for right in guesses]))
    gain = guesses[best].sum() - plain.sum()
    differ = int(np.count_nonzero(guesses[best] != plain))
    if not gain > CLEAR_ERRORS * np.sqrt(differ):
        return None
    squared = _distances(setting.records[:, columns], public[:, columns])
    return _kernel_weights(squared, REACHES[best])


def _distances(records: FloatArray, public: FloatArray) -> FloatArray:
    """Return mean squared distances in public standard deviations, (n, m)."""
    spread = public.std(axis=0)
    scaled_records, scaled_public = records / spread, public / spread
    squares = (scaled_records**2).sum(axis=1)[:, None] + (scaled_public**2).sum(axis=1)
    squares = squares - 2 * scaled_records @ scaled_public.T
    return np.asarray(np.maximum(squares, 0) / len(spread))


def _kernel_weights(squared: FloatArray, reach: float) -> FloatArray:
    """Return Gaussian weights of squared distances, rows adding to 1."""
    finite = np.isfinite(squared)
    near = np.exp(-np.where(finite, squared, 0.0) / (2 * reach**2))
    weights_raw = np.where(finite, near + _UNLIKE_WEIGHT, 0.0)
    return np.asarray(weights_raw / weights_raw.sum(axis=1, keepdims=True))


_SURFACE, _BOX = "surface.", "box."
_ARRAYS = ("engine", "why", "clean", "withheld", "public", "without", "weights")


@dataclass(frozen=True)
class Profile:
    """Surface of a model, and the answers that deployments are compared with.

    ``clean`` (n,) are the answers to agree with and ``withheld`` (n,) those with the
    public constants in place. ``public`` (n, m) are the answers with each
    public record's sensitive values in place, None without public records, and
    ``weights`` (n, m) what each of them weighs, None for all alike; ``without`` (n,)
    are those of the model trained without the features, None without training data.
    ``why`` says why better engines refused, empty if none did. ``box`` is where answers
    certainly stay, None where the surface cannot tell; ``published`` the boxes of the
    published procedure, None where they were not asked for.
    """

    engine: str
    why: str
    surface: base.Surface
    clean: deployment.Places
    withheld: deployment.Places
    public: NDArray[np.uint16] | None
    without: deployment.Places | None
    weights: FloatArray | None = None
    box: Box | None = None
    published: Box | None = None

    @property
    def n_classes(self) -> int:
        """Number of the model's classes."""
        return self.surface.n_classes

    @property
    def votes(self) -> NDArray[np.uint16]:
        """Answers at public values; without public records a UserError."""
        if self.public is None:
            raise UserError(deployment.NO_PRIOR)
        return self.public

    def class_weights(self, which: slice = slice(None)) -> list[FloatArray]:
        """Return for each class the weights (n, m) of its public values.

        K arrays (n, m); UserError where there are no public records.
        """
        votes = self.votes[which]
        weight = 1.0 if self.weights is None else self.weights[which]
        return [(votes == place) * weight for place in range(self.n_classes)]

    @cached_property
    def usual_class(self) -> deployment.Places:
        """Class of most weight among public values, (n,)."""
        scores = [weights.sum(axis=1) for weights in self.class_weights()]
        return np.asarray(np.argmax(scores, axis=0), dtype=np.int64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that `restore_profile` needs; published boxes are not."""
        box = {} if self.box is None else vars(self.box)
        return {
            **{_SURFACE + name: part for name, part in self.surface.arrays().items()},
            **{_BOX + name: part for name, part in box.items()},
            **{
                name: np.asarray(part)
                for name in _ARRAYS
                if (part := getattr(self, name)) is not None
            },
        }


def build_profile(
    setting: deployment.Setting,
    *,
    evidence: base.EvidenceWanted = "auto",
    published: Entropy | None = None,
) -> Profile:
    """Return the profile of a setting's model, by the engine chosen for it.

    With entropy for it the boxes are ``published``, too: 516,446 queries a record and
    more. UserError where no engine can give the evidence asked for.
    """
    engine, why = base.choose_engine(setting.question, evidence)
    surface = engine.surface(setting.question)
    clean = surface.clean if setting.reference is None else setting.reference
    return Profile(
        engine.name,
        why,
        surface,
        np.asarray(clean),
        setting.answers(setting.withhold(setting.records)),
        None if setting.public is None else setting.put(setting.records),
        None if setting.train is None else deployment.answers_without(setting),
        prior_weights(setting),
        certified_box(surface, setting.question),
        None if published is None else published_boxes(setting.question, published),
    )


def restore_profile(
    setting: deployment.Setting, arrays: dict[str, NDArray[Any]]
) -> Profile:
    """Return the profile built again from its ``arrays``."""
    surface_arrays, inner = (
        {key.removeprefix(pre): a for key, a in arrays.items() if key.startswith(pre)}
        for pre in (_SURFACE, _BOX)
    )
    fields: dict[str, Any] = {name: arrays.get(name) for name in _ARRAYS}
    fields |= {name: str(fields[name]) for name in ("engine", "why")}
    engine = base.make_engine(fields["engine"])
    surface = engine.restored(setting.question, surface_arrays)
    return Profile(**fields, surface=surface, box=Box(**inner) if inner else None)
