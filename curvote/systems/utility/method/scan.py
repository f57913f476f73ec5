"""Deployments of a setting, and what each of them does to each record."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from inspect import signature
from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.entropy import SeededEntropy, SystemEntropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.learning.intervals import binomial_interval
from curvote.mechanisms.base import LabelMechanism, Law, Mixture
from curvote.mechanisms.factory import mechanism_class, names
from curvote.mechanisms.randomized_response import KRR
from curvote.systems.utility.method import measurement
from curvote.systems.utility.method.deployment import (
    NO_TRAIN,
    OUTPUT,
    READ_ORDER,
    Deployment,
    ReadMode,
    Setting,
    check_deployment,
    deployment_channel,
    fit_again,
    floor_deployments,
    is_vector,
)
from curvote.systems.utility.method.engines import base
from curvote.systems.utility.method.engines.trees.engine import cell_counts
from curvote.systems.utility.method.profile import (
    Profile,
    certified_bound,
    published_claim,
)

# A bin is so many times narrower than the middle half of the noise.
FINENESS = 12
FEWEST, MOST = 16, 512
# What lies beyond this share of the mass, on either side, is one bin.
TAIL = 1e-3
_STEPS = 40
# Less mass than this is no rest, but rounding.
_NOTHING = 1e-9


def bin_edges(laws: Sequence[Law], number: int | None = None) -> FloatArray:
    """Return the bins' inner ends, (b - 1,), increasing, for laws of public inputs.

    Bin k is (end k-1, end k]. ``laws`` are those of one number in each term of a
    mixture. Atoms have bins of their own; the rest is cut evenly into ``number`` bins
    (`count_bins` where not given) between its outermost quantiles.
    """
    points = np.unique(np.concatenate([law.points[law.masses > 0] for law in laws]))
    smooth = _continuous_laws(laws)
    if not smooth:
        return np.asarray(points[:-1])
    atoms = np.concatenate([points, np.nextafter(points, -inf)])
    low, high = _central_range(smooth)
    count = count_bins(laws) if number is None else number
    return np.unique(np.concatenate([atoms, np.linspace(low, high, count - 1)]))


def count_bins(laws: Sequence[Law]) -> int:
    """Return the number of bins of the continuous part: `FINENESS` in its half.

    At least ``FEWEST`` and at most ``MOST``; 1 where there are atoms only.
    """
    smooth = _continuous_laws(laws)
    if not smooth:
        return 1
    low, high = _central_range(smooth)
    halves = [_quantile(law, 0.75) - _quantile(law, 0.25) for law in smooth]
    narrowest = min(float(np.median(half)) for half in halves)
    width = max(narrowest / FINENESS, (high - low) / MOST)
    return int(np.clip(np.ceil((high - low) / width), FEWEST, MOST))


def _continuous_laws(laws: Sequence[Law]) -> list[Law]:
    return [law for law in laws if law.masses.sum(axis=1).min() < 1 - _NOTHING]


def _central_range(laws: Sequence[Law]) -> tuple[float, float]:
    low = min(float(_quantile(law, TAIL).min()) for law in laws)
    high = max(float(_quantile(law, 1 - TAIL).max()) for law in laws)
    return low, high


def _quantile(law: Law, share: float) -> FloatArray:
    """Return the quantile of each input, (n,), by bisection."""
    reach = 1.0
    while law.cdf([reach]).min() < 1 - TAIL / 2 or law.cdf([-reach]).max() > TAIL / 2:
        reach *= 2
    low, high = np.full(law.n, -reach), np.full(law.n, reach)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        under = law.cdf(middle[:, None])[:, 0] < share
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return high


def bin_masses(law: Law, ends: FloatArray) -> FloatArray:
    """Return P(each bin), (n, b), for the bins between ``ends`` (b - 1,)."""
    full = np.zeros((law.n, len(ends) + 2))
    full[:, 1:-1], full[:, -1] = law.cdf(ends), 1.0
    return np.maximum(np.diff(full, axis=1), 0.0)


# Draws of a record: fewer than asked for where reading one asks m public points.
MOST_DRAWS, FEWEST_DRAWS = 200, 20
# Likelihoods that are looked up for all of them, at most: some seconds.
MOST_WORK = 1 << 29
# Numbers in a batch of outputs and public points.
_BATCH_NUMBERS = 1 << 22
_LEAST = 1e-300


def decode_draws(
    setting: Setting,
    profile: Profile,
    link: base.Channel,
    prior: Mixture,
    draws: base.Draws,
) -> base.Answers:
    """Return the decoded answers' shares of at most `MOST_DRAWS` draws a record.

    Fewer, 20 at least, where records, public points and numbers sent are many. Each
    output is rounded to the same public bins as in the exact way, one number by
    itself, and read by their exact likelihood.
    """
    places = [place for part in link.parts for place in part.places]
    cuts = [bin_edges([term[place] for term in prior.terms]) for place in places]
    # ln P(bin | public point) of each number (bins, m), and the weights (m,), by term.
    logs = [
        [np.log(np.maximum(masses, _LEAST)).T.copy() for masses in numbers]
        for numbers in _bin_law(prior, places, cuts).terms
    ]
    log_weights = np.log(np.maximum(prior.weights.T, _LEAST))

    def likelihood(outputs: FloatArray) -> FloatArray:
        # P(bins of the output | public point), (r, m), up to a factor a row.
        pairs = zip(cuts, outputs.T, strict=True)
        bins = [np.searchsorted(ends, column) for ends, column in pairs]
        parts = [
            sum(table[at] for table, at in zip(tables, bins, strict=True)) + weight
            for tables, weight in zip(logs, log_weights, strict=True)
        ]
        joint = np.logaddexp.reduce(parts, axis=0)
        return np.asarray(np.exp(joint - joint.max(axis=1, keepdims=True)))

    n, m = setting.n, len(prior.weights)
    work = n * m * len(cuts) * len(logs)
    number = min(draws.number, max(FEWEST_DRAWS, min(MOST_DRAWS, MOST_WORK // work)))
    entropy = draws.entropy or SystemEntropy()
    counts = np.zeros((n, profile.n_classes), dtype=np.int64)
    size = max(1, _BATCH_NUMBERS // (number * m))
    for start in range(0, n, size):
        which = slice(start, min(start + size, n))
        values = np.repeat(setting.values[which], number, axis=0)
        likelihoods = likelihood(link.draw(values, entropy)[:, places])
        class_weights = profile.class_weights(which)
        by_record = likelihoods.reshape(len(class_weights[0]), number, -1)
        scores = [np.einsum("irm,im->ir", by_record, w) for w in class_weights]
        answers = np.asarray(np.argmax(scores, axis=0))
        counts[which] = [np.bincount(a, minlength=profile.n_classes) for a in answers]
    low, high = binomial_interval(counts, number, draws.confidence)
    queries = np.full(n, profile.votes.shape[1], dtype=np.int64)
    return base.Answers(counts / number, low, high, "draws", queries, number)


# Bins of two features together: what more of them gain is below .001.
MOST_BINS = 1 << 12
# More terms of a mixture than these are drawn from.
MOST_TERMS = 64
# Numbers in a block of bins and records.
_BLOCK_NUMBERS = 1 << 22


@dataclass(frozen=True)
class Binned:
    """Laws of n inputs on a grid of bins of one or two numbers.

    ``terms`` holds for each term of the mixture the masses (n, b) of each number's
    bins; ``weights`` (n, t) are the terms'.
    """

    weights: FloatArray
    terms: Sequence[Sequence[FloatArray]]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of bins of the first and of the second number (1: none)."""
        first, *remaining = self.terms[0]
        return first.shape[1], remaining[0].shape[1] if remaining else 1

    def block(self, which: slice) -> FloatArray:
        """Return P(bin), (n, bins), for some bins of the first number."""
        parts = []
        for weight, (first, *remaining) in zip(self.weights.T, self.terms, strict=True):
            masses = first[:, which]
            for other in remaining:
                pairs = masses[:, :, None] * other[:, None]
                masses = pairs.reshape(len(masses), -1)
            parts.append(weight[:, None] * masses)
        return np.asarray(sum(parts))


def bin_laws(
    prior: Mixture, law: Mixture, places: Sequence[int]
) -> tuple[Binned, Binned]:
    """Return both laws on the same bins, made for the public ``prior`` alone.

    ``places`` are the places of the one or two numbers that are sent.
    """
    laws_by_number = [[term[place] for term in prior.terms] for place in places]
    counts = [count_bins(laws) for laws in laws_by_number]
    if len(counts) > 1:  # reduced to fit together
        shrink = min(1.0, np.sqrt(MOST_BINS / np.prod(counts)))
        counts = [max(4, round(count * shrink)) for count in counts]
    cuts = list(map(bin_edges, laws_by_number, counts))
    return _bin_law(prior, places, cuts), _bin_law(law, places, cuts)


def _bin_law(law: Mixture, places: Sequence[int], cuts: Sequence[FloatArray]) -> Binned:
    pairs = list(zip(places, cuts, strict=True))
    terms = [[bin_masses(term[i], ends) for i, ends in pairs] for term in law.terms]
    return Binned(law.weights, terms)


def decode(
    setting: Setting, profile: Profile, deployment: Deployment, draws: base.Draws
) -> base.Answers:
    """Return the decoded answers' shares, exact for up to two sent features."""
    link = replace(deployment_channel(setting, deployment), clip=False)
    places = [place for part in link.parts for place in part.places]
    law, prior = link.law(setting.values), link.law(setting.prior)
    if law is None or prior is None:
        raise UserError(
            f"{deployment.mechanism} has no law that can be written out, so its output"
            " cannot be decoded: read it raw."
        )
    if len(places) > 2 or len(prior.terms) > MOST_TERMS:  # too many bins to list
        return decode_draws(setting, profile, link, prior, draws)
    class_weights = profile.class_weights()
    binned_prior, binned_law = bin_laws(prior, law, places)
    shares = np.zeros((len(class_weights[0]), len(class_weights)))
    first, second = binned_law.shape
    size = max(1, _BLOCK_NUMBERS // (len(shares) * second))
    for start in range(0, first, size):  # bins of the first number
        block = slice(start, start + size)
        likelihood, chance = binned_prior.block(block), binned_law.block(block)
        answer = _best_class(class_weights, likelihood)
        for place in range(len(class_weights)):
            shares[:, place] += np.einsum("ij,ij->i", chance, answer == place)
    return measurement.exact_answers(shares, profile.votes.shape[1])


def _best_class(
    class_weights: list[FloatArray], likelihood: FloatArray
) -> NDArray[np.int64]:
    """Return the class of most posterior weight, (n, bins); ties: the first."""
    if len(class_weights) == 2:
        first, second = class_weights
        return np.asarray(((second - first) @ likelihood > 0).astype(np.int64))
    best = class_weights[0] @ likelihood
    answer = np.zeros(best.shape, dtype=np.int64)
    for place, weights in enumerate(class_weights[1:], 1):
        score = weights @ likelihood
        answer[score > best] = place
        np.maximum(best, score, out=best)
    return answer


Split = tuple[float, ...]
# The steps of a grid over two features.
QUARTERS = 4
# One of more features than these says next to nothing alone.
MOST_ALONE = 8
# Public records, and values of others put in their place, to see what moves answers.
_PUBLIC_SAMPLE, _SHIFTS = 400, 8


def candidate_splits(setting: Setting) -> list[Split]:
    """Return the candidate splits, the equal one first; 0 is withheld.

    One feature takes all. Two: a grid of quarters. More: equal, each of up to eight
    alone and, with public records, in proportion to `influence`, over all and over the
    upper half.
    """
    s = len(setting.sensitive)
    splits: list[Split] = [(1 / s,) * s]
    if s <= 2:
        steps = product(range(QUARTERS + 1), repeat=s)
        quarters = (row for row in steps if sum(row) == QUARTERS)
        splits += [tuple(k / QUARTERS for k in row) for row in quarters]
    elif s <= MOST_ALONE:
        splits += [tuple(map(float, row)) for row in np.eye(s)]
    if s > 2 and setting.public is not None:
        weight = influence(setting, setting.public)
        upper = weight * (weight >= np.median(weight))
        splits += [tuple((part / part.sum()).tolist()) for part in (weight, upper)]
    return list(dict.fromkeys(splits))


def influence(setting: Setting, public: FloatArray) -> FloatArray:
    """Return for each sensitive feature how often it alone moves an answer, (s,).

    Over public records with the values of others in place; all equal where none moves.
    """
    records, moved = public[:_PUBLIC_SAMPLE], []
    clean = setting.answers(records)
    shifts = np.linspace(1, len(records), _SHIFTS, endpoint=False).astype(int)
    for column in setting.sensitive:
        shares = []
        for shift in shifts:
            shifted = records.copy()
            shifted[:, column] = np.roll(records[:, column], shift)
            shares.append(np.mean(setting.answers(shifted) != clean))
        moved.append(float(np.mean(shares)))
    return np.array(moved) if max(moved) > 0 else np.ones(len(moved))


# A surface of more cells a record costs more than draws do: trees that were fitted to
# noise, which hardly repeats itself, have thresholds without end.
MOST_CELLS = 1e5
_SAMPLE_RECORDS = 20
COPIES = 4


def retrain(
    setting: Setting,
    profile: Profile,
    deployment: Deployment,
    draws: base.Draws,
    seed: int,
) -> base.Answers:
    """Return the answers of the model fitted again on `COPIES` of data noised alike.

    The copies are noised independently, from ``seed``, and stacked. Evidence is the
    engine's own where its surface is cheap, else drawn. It is about this one fit:
    another seed fits another model.
    """
    if setting.train is None:
        raise UserError(NO_TRAIN)
    features, targets = setting.train
    columns, link = list(setting.sensitive), deployment_channel(setting, deployment)
    rows = np.tile(np.asarray(features, dtype=np.float64), (COPIES, 1))
    values = np.clip(rows[:, columns], *setting.bounds.T)
    rows[:, columns] = link.draw(values, SeededEntropy(seed))
    model = fit_again(setting.model, rows, np.tile(targets, COPIES))
    question = replace(setting.question, model=model)
    cheap = profile.engine == "linear"
    if profile.engine == "trees":
        sample = replace(question, records=setting.records[:_SAMPLE_RECORDS])
        cheap = float(cell_counts(sample).mean()) <= MOST_CELLS
    engine = base.make_engine(profile.engine if cheap else "black_box")
    return engine.surface(question).answers(link, draws)


@cache
def scanned_mechanisms(d: int, delta: float = 0.0) -> tuple[str, ...]:
    """Return the names of mechanisms that can carry ``d`` features.

    Left out are those that need what has no public default, those whose outputs are no
    numbers, and those without a law, which must be drawn: name them to have them.
    """
    bounds, middle, carriers = np.tile([0.0, 1.0], (d, 1)), np.full((1, d), 0.5), []
    for name in names():
        needs = _accepted_params(name, {"delta": delta} if delta else {})
        if issubclass(mechanism_class(name), LabelMechanism):
            needs["n_classes"] = 3
        with suppress(UserError):
            link = base.make_channel(
                name, epsilon=1.0, bounds=bounds, fill_value=middle[0], **needs
            )
            # Outputs are to be numbers like the inputs, not codes.
            codes = any(
                isinstance(kind := part.mechanism, LabelMechanism)
                and not np.array_equal(kind.outputs(), np.arange(kind.n_classes))
                for part in link.parts
            )
            if not codes and link.law(middle) is not None:
                carriers.append(name)
    return tuple(carriers)


def _accepted_params(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    parameters = signature(mechanism_class(name)).parameters
    return {key: value for key, value in params.items() if key in parameters}


def list_deployments(
    setting: Setting,
    epsilons: Sequence[float],
    mechanisms: Sequence[str] | None = None,
    *,
    reads: Sequence[ReadMode] | None = None,
    delta: float = 0.0,
    params: Mapping[str, Any] | None = None,
) -> list[Deployment]:
    """Return the floors, then all candidates for each total epsilon.

    ``mechanisms`` are `scanned_mechanisms` unless named; ``reads`` are ``raw``, with
    public records ``decode``, and with training data ``retrain``, unless named. Every
    scalar mechanism is there with each of `candidate_splits`; it is retrained at its
    equal split only, since that fits models.
    """
    s = len(setting.sensitive)
    chosen = scanned_mechanisms(s, delta) if mechanisms is None else tuple(mechanisms)
    data = {"raw": (), "decode": setting.public, "retrain": setting.train}
    available = [name for name in READ_ORDER if data[name] is not None]
    read = available if reads is None else tuple(reads)
    accepted = {**(params or {}), **({"delta": delta} if delta else {})}
    shares = candidate_splits(setting)
    result = floor_deployments(setting)
    for epsilon in epsilons:
        result.append(Deployment(OUTPUT, validate.positive(epsilon=epsilon)))
        for name in chosen:
            own_params = _accepted_params(name, accepted)
            own_delta = own_params.pop("delta", 0.0)
            tried = [None] if is_vector(name) else shares
            result += [
                Deployment(name, float(epsilon), split, way, own_delta, own_params)
                for split in tried
                for way in read
                if way != "retrain" or split == tried[0]
            ]
    return result


def measure(
    setting: Setting,
    profile: Profile,
    deployment: Deployment,
    draws: base.Draws | None = None,
    seed: int = 0,
) -> measurement.Measurement:
    """Return the effect of a deployment on each record.

    ``draws`` says how evidence is drawn where it must be; from ``seed`` models are
    fitted again. A deployment that is none for the setting is a UserError.
    """
    draws = base.Draws() if draws is None else draws
    check_deployment(deployment, setting)
    k, read, fixed = profile.n_classes, deployment.read, measurement.fixed_answers
    if deployment.free and read == "decode":
        answers = fixed(profile.usual_class, k)
    elif deployment.free:
        places = profile.without if read == "without" else profile.withheld
        if places is None:
            raise UserError(NO_TRAIN)
        answers = fixed(places, k)
    elif deployment.mechanism == OUTPUT:
        # The clean answer survives with probability e^epsilon / (e^epsilon + K - 1),
        # rounded towards privacy as the mechanism is.
        law = KRR(epsilon=deployment.epsilon, n_classes=k).probabilities(np.arange(k))
        answers = measurement.exact_answers(law[profile.clean], 1)
    elif read == "decode":
        answers = decode(setting, profile, deployment, draws)
    elif read == "retrain":
        answers = retrain(setting, profile, deployment, draws, seed)
    else:
        channel = deployment_channel(setting, deployment)
        answers = profile.surface.answers(channel, draws)
    measured = measurement.measure_agreement(
        answers, profile.clean, setting.labels, draws.confidence
    )
    if read != "raw" or deployment.mechanism == OUTPUT:
        return measured
    link, values = deployment_channel(setting, deployment), setting.values
    bound = claimed = None
    if profile.box is not None:
        unchanged = profile.clean == profile.surface.clean
        bound = certified_bound(link, values, profile.box)
        bound = np.where(unchanged, bound, 0.0)
    if profile.published is not None:
        claimed = published_claim(link, values, profile.published)
    return replace(measured, bound=bound, claimed=claimed)
