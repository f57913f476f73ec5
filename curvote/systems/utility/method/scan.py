"""Splits of a total epsilon over the sensitive features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from inspect import signature
from itertools import product
from typing import Any

import numpy as np

from curvote.base import validate
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.factory import mechanism_class, names
from curvote.mechanisms.randomized_response import KRR
from curvote.systems.utility.method.channel import Channel, Part, make_channel
from curvote.systems.utility.method.decoding import decode
from curvote.systems.utility.method.deployment import (
    OUTPUT,
    Deployment,
    ReadMode,
    check_deployment,
    deployment_channel,
    fit_again,
    floor_deployments,
    is_vector,
)
from curvote.systems.utility.method.engines.base import Answers, Draws, make_engine
from curvote.systems.utility.method.engines.trees.engine import cell_counts
from curvote.systems.utility.method.measurement import (
    Measurement,
    exact_answers,
    fixed_answers,
    measure_agreement,
)
from curvote.systems.utility.method.profile import Profile
from curvote.systems.utility.method.robustness import certified_bound, published_claim
from curvote.systems.utility.method.setting import NO_TRAIN, Places, Setting

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
    equal = (1 / s,) * s
    if s <= 2:
        return _drop_repeated([equal, *_quarter_splits(s)])
    alone = [tuple(map(float, row)) for row in np.eye(s)] if s <= MOST_ALONE else []
    return _drop_repeated([equal, *alone, *_influence_splits(setting)])


def _quarter_splits(s: int) -> list[Split]:
    """Return the splits in quarters over ``s`` features."""
    steps = product(range(QUARTERS + 1), repeat=s)
    return [tuple(k / QUARTERS for k in row) for row in steps if sum(row) == QUARTERS]


def _drop_repeated(candidates: list[Split]) -> list[Split]:
    """Return the splits without repetitions, in order."""
    return list(dict.fromkeys(candidates))


def _influence_splits(setting: Setting) -> list[Split]:
    """Return splits in proportion to `influence`, with public records."""
    if setting.public is None:
        return []
    weight = influence(setting, setting.public)
    upper = weight * (weight >= np.median(weight))
    return [tuple((weights / weights.sum()).tolist()) for weights in (weight, upper)]


def influence(setting: Setting, public: FloatArray) -> FloatArray:
    """Return for each sensitive feature how often it alone moves an answer, (s,).

    Over public records with the values of others in place; all equal where none moves.
    """
    records = public[:_PUBLIC_SAMPLE]
    clean = setting.answers(records)
    moved = [
        _moved_share(setting, records, clean, column) for column in setting.sensitive
    ]
    return np.array(moved) if max(moved) > 0 else np.ones(len(moved))


def _moved_share(
    setting: Setting, records: FloatArray, clean: Places, column: int
) -> float:
    """Return the share of answers that one column's values move."""
    shifts = np.linspace(1, len(records), _SHIFTS, endpoint=False).astype(int)
    shares = []
    for shift in shifts:
        shifted = records.copy()
        shifted[:, column] = np.roll(records[:, column], shift)
        shares.append(np.mean(setting.answers(shifted) != clean))
    return float(np.mean(shares))


def randomized_answers(clean: Places, n_classes: int, epsilon: float) -> Answers:
    """Return the answers after k-ary randomised response with all of ``epsilon``.

    The clean one survives with probability e^epsilon / (e^epsilon + K - 1), rounded
    towards privacy as the mechanism is.
    """
    mechanism = KRR(epsilon=epsilon, n_classes=n_classes)
    channel = mechanism.probabilities(np.arange(n_classes))
    return exact_answers(channel[clean], 1)


# A surface of more cells a record costs more than draws do: trees that were fitted to
# noise, which hardly repeats itself, have thresholds without end.
MOST_CELLS = 1e5
_SAMPLE_RECORDS = 20


@dataclass(frozen=True)
class Refit:
    """Parameters of a refit: ``copies`` >= 1 of the data, noised from ``seed``.

    The copies are noised independently and stacked.
    """

    copies: int = 4
    seed: int = 0


def retrain(
    setting: Setting,
    profile: Profile,
    deployment: Deployment,
    draws: Draws,
    refit: Refit,
) -> Answers:
    """Return the answers of the model fitted again on data noised alike.

    Evidence is the engine's own where its surface is cheap, else drawn. It is about
    this one fit: another seed fits another model.
    """
    if setting.train is None:
        raise UserError(NO_TRAIN)
    features, targets = setting.train
    columns, link = list(setting.sensitive), deployment_channel(setting, deployment)
    rows = np.tile(np.asarray(features, dtype=np.float64), (refit.copies, 1))
    values = np.clip(rows[:, columns], *setting.bounds.T)
    rows[:, columns] = link.draw(values, SeededEntropy(refit.seed))
    model = fit_again(setting.model, rows, np.tile(targets, refit.copies))
    return _retrained_answers(replace(setting, model=model), profile, link, draws)


def _retrained_answers(
    setting: Setting, profile: Profile, link: Channel, draws: Draws
) -> Answers:
    """Return the answers of the refitted model, exact where that is cheap."""
    name = profile.engine if _is_cheap(setting, profile) else "black_box"
    surface = make_engine(name).surface(setting.question)
    return surface.answers(link, draws)


def _is_cheap(setting: Setting, profile: Profile) -> bool:
    """Return whether the engine's surface costs no more than draws do."""
    if profile.engine != "trees":
        return profile.engine == "linear"
    sample = replace(setting.question, records=setting.records[:_SAMPLE_RECORDS])
    return float(cell_counts(sample).mean()) <= MOST_CELLS


@cache
def scanned_mechanisms(d: int, delta: float = 0.0) -> tuple[str, ...]:
    """Return the names of mechanisms that can carry ``d`` features.

    Left out are those that need what has no public default, those whose outputs are no
    numbers, and those without a law, which must be drawn: name them to have them.
    """
    return tuple(name for name in names() if _can_carry(name, d, delta))


def _can_carry(name: str, d: int, delta: float) -> bool:
    """Return whether a mechanism can carry ``d`` features with a law."""
    bounds, middle = np.tile([0.0, 1.0], (d, 1)), np.full((1, d), 0.5)
    needs = _accepted_params(name, {"delta": delta} if delta else {})
    if issubclass(mechanism_class(name), LabelMechanism):
        needs["n_classes"] = 3
    try:
        link = make_channel(
            name, epsilon=1.0, bounds=bounds, fill_value=middle[0], **needs
        )
        return link.law(middle) is not None and all(map(_outputs_numbers, link.parts))
    except UserError:
        return False


def _outputs_numbers(part: Part) -> bool:
    """Return whether outputs are numbers like the inputs, not codes."""
    mechanism = part.mechanism
    if not isinstance(mechanism, LabelMechanism):
        return True
    return np.array_equal(mechanism.outputs(), np.arange(mechanism.n_classes))


def _accepted_params(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that the mechanism accepts."""
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
    read = _available_reads(setting) if reads is None else tuple(reads)
    accepted = {**(params or {}), **({"delta": delta} if delta else {})}
    shares = candidate_splits(setting)
    result = floor_deployments(setting)
    for epsilon in epsilons:
        result.append(Deployment(OUTPUT, validate.positive(epsilon=epsilon)))
        for name in chosen:
            result += _mechanism_deployments(
                name, epsilon, shares, read, _accepted_params(name, accepted)
            )
    return result


def _mechanism_deployments(
    name: str,
    epsilon: float,
    shares: Sequence[Split],
    reads: Sequence[ReadMode],
    params: dict[str, Any],
) -> list[Deployment]:
    """Return one mechanism's deployments for all splits and reads."""
    tried = [None] if is_vector(name) else list(shares)
    delta = params.pop("delta", 0.0)
    return [
        Deployment(name, float(epsilon), split, read, delta, params)
        for split in tried
        for read in reads
        if read != "retrain" or split == tried[0]
    ]


def _available_reads(setting: Setting) -> tuple[ReadMode, ...]:
    """Return the ways of reading for which the setting has the data."""
    decode: tuple[ReadMode, ...] = () if setting.public is None else ("decode",)
    retrain: tuple[ReadMode, ...] = () if setting.train is None else ("retrain",)
    return ("raw", *decode, *retrain)


def measure(
    setting: Setting,
    profile: Profile,
    deployment: Deployment,
    draws: Draws | None = None,
    refit: Refit | None = None,
) -> Measurement:
    """Return the effect of a deployment on each record.

    ``draws`` says how evidence is drawn where it must be; ``refit`` how models
    are fitted again. A deployment that is none for the setting is a UserError.
    """
    how = Draws() if draws is None else draws
    deployment_checked = check_deployment(deployment, setting)
    answers = _deployment_answers(
        setting, profile, deployment_checked, how, refit or Refit()
    )
    measurement = measure_agreement(
        answers, profile.clean, setting.labels, how.confidence
    )
    if deployment_checked.read != "raw" or deployment_checked.mechanism == OUTPUT:
        return measurement
    link, values = deployment_channel(setting, deployment_checked), setting.values
    box_bound = (
        None if profile.box is None else certified_bound(link, values, profile.box)
    )
    unchanged = profile.clean == profile.surface.clean
    published = profile.published
    return replace(
        measurement,
        bound=None if box_bound is None else np.where(unchanged, box_bound, 0.0),
        claimed=None if published is None else published_claim(link, values, published),
    )


def _deployment_answers(
    setting: Setting,
    profile: Profile,
    deployment: Deployment,
    draws: Draws,
    refit: Refit,
) -> Answers:
    """Return the answers' shares by the way of reading."""
    if deployment.free:
        if deployment.read == "decode":
            return fixed_answers(profile.usual_class, profile.n_classes)
        places = profile.without if deployment.read == "without" else profile.withheld
        if places is None:
            raise UserError(NO_TRAIN)
        return fixed_answers(places, profile.n_classes)
    if deployment.mechanism == OUTPUT:
        return randomized_answers(profile.clean, profile.n_classes, deployment.epsilon)
    if deployment.read == "decode":
        return decode(setting, profile, deployment, draws)
    if deployment.read == "retrain":
        return retrain(setting, profile, deployment, draws, refit)
    return profile.surface.answers(deployment_channel(setting, deployment), draws)
