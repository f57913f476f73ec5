"""Profile of a model: what is known of it, and what public records weigh in a prior.

To what is known belong boxes around records in which the answer certainly stays (Zheng
& Hu, section 5.1): first the radius, then each side on its own as far as it stays.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

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

    first = bisect_radius(holds_inside, inner, bounds, RADIUS_PRECISION)
    ends = grow_boxes(holds_inside, ball_boxes(inner, first, bounds), bounds, precision)
    reach = inscribed_radius(ends, inner, bounds)
    none = np.zeros(len(values), dtype=np.int64)
    return Box(reach, ends[..., 0], ends[..., 1], point, none)


def inscribed_radius(
    ends: FloatArray, values: FloatArray, bounds: FloatArray
) -> FloatArray:
    """Return the radius of the largest ball within boxes, as a share.

    A side at the bounds stands in no way.
    """
    reach = np.abs(ends - values[..., None]) / np.diff(bounds)
    return np.asarray(np.where(ends == bounds, 1.0, reach).min(axis=(1, 2)))


def grow_boxes(
    holds: HoldsTest,
    balls: FloatArray,
    bounds: FloatArray,
    precision: float,
    first_step: float = 0.25,
) -> FloatArray:
    """Return boxes (n, s, 2) that ``holds`` accepts, grown from ``balls``.

    Each side in turn takes steps of ``first_step`` widths until none of a box's sides
    can. Then the step is halved, down to the precision, and each side takes one at
    most: two would have been a step before. With a first step of 0 the balls stay.
    """
    ends = balls.copy()
    step = np.full(len(balls), first_step)
    open_ = np.ones(ends.shape, dtype=bool)
    while (step >= precision).any():
        first = step == first_step
        for side in np.ndindex(ends.shape[1:]):
            at = (slice(None), *side)
            open_[at] &= _push_side(holds, ends, side, step * open_[at], bounds) & first
        done = ~open_.any(axis=(1, 2))
        open_[done] = True
        step = np.where(done, step / 2, step)
        step[step < precision] = 0
    return ends


def ball_boxes(
    values: FloatArray, radius: FloatArray, bounds: FloatArray
) -> FloatArray:
    """Return the balls of these radii within the bounds, (n, s, 2)."""
    low, high = bounds.T
    reach = radius[:, None] * (high - low)
    ends = np.maximum(values - reach, low), np.minimum(values + reach, high)
    return np.stack(ends, axis=-1)


def bisect_radius(
    holds: HoldsTest, values: FloatArray, bounds: FloatArray, precision: float
) -> FloatArray:
    """Return the largest accepted radius of each record, (n,), by bisection."""
    accepted, refused = np.zeros(len(values)), np.ones(len(values))
    every = np.ones(len(values), dtype=bool)
    for _ in range(math.ceil(-math.log2(precision))):
        middle = (accepted + refused) / 2
        ends = ball_boxes(values, middle, bounds)
        holding = holds(ends[..., 0], ends[..., 1], every)
        accepted = np.where(holding, middle, accepted)
        refused = np.where(holding, refused, middle)
    return accepted


def _push_side(
    holds: HoldsTest,
    ends: FloatArray,
    side: tuple[int, ...],
    step: FloatArray,
    bounds: FloatArray,
) -> Mask:
    """Move one side of each box by its step where it then holds; return where."""
    i, end = side
    width = bounds[i, 1] - bounds[i, 0]
    moved_end = np.clip(ends[:, i, end] + (2 * end - 1) * step * width, *bounds[i])
    wanted: Mask = moved_end != ends[:, i, end]
    if not wanted.any():
        return wanted
    tried = ends.copy()
    tried[:, i, end] = moved_end
    accepted = wanted & holds(tried[..., 0], tried[..., 1], wanted)
    ends[accepted, i, end] = moved_end[accepted]
    return accepted


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


def uniform_numbers(count: tuple[int, ...], entropy: Entropy) -> FloatArray:
    """Return uniform numbers in [0, 1), of 53 bits."""
    words = entropy.words(int(np.prod(count)))
    return np.asarray((words >> np.uint64(11)).reshape(count) * 2.0**-53)


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


def box_by_trials(
    question: base.Question,
    entropy: Entropy,
    *,
    tolerance: float = 0.01,
    risk: float = 0.05,
    precision: float = TRIAL_PRECISION,
) -> Box:
    """Return boxes in which at most ``tolerance`` of all points get another answer.

    That is true of every box that was accepted for a record with probability
    1 - ``risk``. It speaks of points that are uniform in the box, not of a mechanism:
    nothing is certified, and no bound follows.
    """
    halvings = math.ceil(-math.log2(precision))
    trials = halvings * (1 + 4 * len(question.bounds))
    trial_rule = make_trial(tolerance, risk, trials)
    return grow_by_trials(question, entropy, trial_rule, precision)


def grow_by_trials(
    question: base.Question,
    entropy: Entropy,
    trial_rule: TrialRule,
    precision: float,
    **how_far: float,
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
                share = uniform_numbers((size, low.shape[1]), entropy)
                rows[:, list(question.sensitive)] = low[i] + (high[i] - low[i]) * share
                answers = base.predict_batched(model, rows)
                wrong += int(np.count_nonzero(answers != clean[i]))
            passed[i] = wrong <= trial_rule.most
        return passed

    balls = ball_boxes(inner, bisect_radius(passes, inner, bounds, precision), bounds)
    ends = grow_boxes(passes, balls, bounds, precision, **how_far)
    reach = inscribed_radius(ends, inner, bounds)
    never = np.zeros(len(inner), dtype=bool)
    return Box(reach, ends[..., 0], ends[..., 1], never, queries)


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


# Zheng & Hu, definition 8: the share of wrong answers that a box may have, and the
# risk of a test. It is taken seven times for a radius, at the same risk each.
TAU = 0.01
OMEGA = 0.05


def query_count(omega: float = OMEGA, tau: float = TAU / 2) -> int:
    """Return ln(2/omega) / (2 tau^2), rounded up (theorem 1): 73,778."""
    return math.ceil(math.log(2 / omega) / (2 * tau * tau))


def published_boxes(
    question: base.Question, entropy: Entropy, *, first_step: float = 0.25
) -> Box:
    """Return the boxes of the published procedure (section 5.1).

    A box passes where at most tau/2 of 73,778 uniform points get another answer; the
    radius takes seven tests, 516,446 queries, and with ``first_step`` 0 it is all.
    ``certified`` is false throughout.
    """
    number = query_count()
    trial_rule = TrialRule(number, math.floor(number * TAU / 2))
    return grow_by_trials(
        question, entropy, trial_rule, TRIAL_PRECISION, first_step=first_step
    )


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
    if public is None or not setting.alike:
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


EvidenceWanted = Literal["auto", "exact", "bracket", "draws"]
_SURFACE, _BOX, _PUBLISHED = "surface.", "box.", "published."


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
        """Return the arrays that `restore_profile` needs."""
        optional: dict[str, NDArray[Any] | None] = {
            "engine": np.array(self.engine),
            "why": np.array(self.why),
            "clean": self.clean,
            "withheld": self.withheld,
            "public": self.public,
            "without": self.without,
            "weights": self.weights,
        }
        parts = {
            _SURFACE: self.surface.arrays(),
            _BOX: _box_arrays(self.box),
            _PUBLISHED: _box_arrays(self.published),
        }
        inner = {pre + key: a for pre, part in parts.items() for key, a in part.items()}
        return inner | {key: a for key, a in optional.items() if a is not None}


def _box_arrays(box: Box | None) -> dict[str, NDArray[Any]]:
    """Return a box's fields as arrays."""
    return {} if box is None else {key: np.asarray(a) for key, a in vars(box).items()}


def build_profile(
    setting: deployment.Setting,
    *,
    evidence: EvidenceWanted = "auto",
    engine: base.Engine | None = None,
    published: Entropy | None = None,
) -> Profile:
    """Return the profile of a setting's model, by the engine chosen for it.

    With entropy for it the boxes are ``published``, too: 516,446 queries a record and
    more. UserError where no engine can give the evidence asked for.
    """
    why = ""
    if engine is None:
        engine, why = base.choose_engine(setting.question, evidence)
    surface = engine.surface(setting.question)
    clean = surface.clean if setting.reference is None else setting.reference
    return Profile(
        engine.name,
        why,
        surface,
        np.asarray(clean),
        deployment.answers_withheld(setting),
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
    engine = base.make_engine(str(arrays["engine"]))
    surface_arrays, inner, published = (
        {key.removeprefix(pre): a for key, a in arrays.items() if key.startswith(pre)}
        for pre in (_SURFACE, _BOX, _PUBLISHED)
    )
    return Profile(
        engine.name,
        str(arrays["why"]),
        engine.restored(setting.question, surface_arrays),
        arrays["clean"],
        arrays["withheld"],
        arrays.get("public"),
        arrays.get("without"),
        arrays.get("weights"),
        Box(**inner) if inner else None,
        Box(**published) if published else None,
    )
