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
from curvote.systems.utility.method.channel import make_channel
from curvote.systems.utility.method.decoding import decode
from curvote.systems.utility.method.deployment import (
    NO_TRAIN,
    OUTPUT,
    Deployment,
    Places,
    ReadMode,
    Setting,
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
    question = replace(setting.question, model=model)
    cheap = profile.engine == "linear"
    if profile.engine == "trees":
        sample = replace(question, records=setting.records[:_SAMPLE_RECORDS])
        cheap = float(cell_counts(sample).mean()) <= MOST_CELLS
    engine = make_engine(profile.engine if cheap else "black_box")
    return engine.surface(question).answers(link, draws)


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
        # Outputs are to be numbers like the inputs, not codes.
        return link.law(middle) is not None and not any(
            isinstance(kind := part.mechanism, LabelMechanism)
            and not np.array_equal(kind.outputs(), np.arange(kind.n_classes))
            for part in link.parts
        )
    except UserError:
        return False


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
    check_deployment(deployment, setting)
    answers = _deployment_answers(setting, profile, deployment, how, refit or Refit())
    measured = measure_agreement(answers, profile.clean, setting.labels, how.confidence)
    if deployment.read != "raw" or deployment.mechanism == OUTPUT:
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
