"""Scan of deployments: the candidates, and their effect on every record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from inspect import signature
from typing import Any

import numpy as np

from curvote import validate
from curvote.errors import UserError
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.making import mechanism_class, names
from curvote.utility.channel import Channel, Part, make_channel
from curvote.utility.deployments.decode import decode
from curvote.utility.deployments.deployment import (
    OUTPUT,
    Deployment,
    ReadMode,
    check_deployment,
    deployment_channel,
    is_vector,
)
from curvote.utility.deployments.floors import floor_deployments
from curvote.utility.deployments.output import randomized_answers
from curvote.utility.deployments.retrain import Refit, retrain
from curvote.utility.deployments.splits import Split, candidate_splits
from curvote.utility.engines.base import Answers, Draws
from curvote.utility.known import Profile
from curvote.utility.measured import Measurement, fixed_answers, measure_agreement
from curvote.utility.robustness.bound import certified_bound
from curvote.utility.robustness.published import published_claim
from curvote.utility.setting import NO_TRAIN, Setting
from curvote.validate import FloatArray


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
    return _add_bounds(setting, profile, deployment_checked, measurement)


def _add_bounds(
    setting: Setting, profile: Profile, deployment: Deployment, measurement: Measurement
) -> Measurement:
    """Add the box bound and the published claim, where the output is read raw."""
    if deployment.read != "raw" or deployment.mechanism == OUTPUT:
        return measurement
    link, values = deployment_channel(setting, deployment), setting.values
    box_bound = (
        None if profile.box is None else certified_bound(link, values, profile.box)
    )
    unchanged = profile.clean == profile.surface.clean
    return replace(
        measurement,
        bound=None if box_bound is None else np.where(unchanged, box_bound, 0.0),
        claimed=_published_claim(link, values, profile),
    )


def _published_claim(
    link: Channel, values: FloatArray, profile: Profile
) -> FloatArray | None:
    """Return the published claim, None where it was not computed."""
    published = profile.published
    return None if published is None else published_claim(link, values, published)


def _deployment_answers(
    setting: Setting,
    profile: Profile,
    deployment: Deployment,
    draws: Draws,
    refit: Refit,
) -> Answers:
    """Return the answers' shares by the way of reading."""
    if deployment.free:
        return _floor_answers(setting, profile, deployment.read)
    if deployment.mechanism == OUTPUT:
        return randomized_answers(profile.clean, profile.n_classes, deployment.epsilon)
    if deployment.read == "decode":
        return decode(setting, profile, deployment, draws)
    if deployment.read == "retrain":
        return retrain(setting, profile, deployment, draws, refit)
    return profile.surface.answers(deployment_channel(setting, deployment), draws)


def _floor_answers(setting: Setting, profile: Profile, read: ReadMode) -> Answers:
    """Return the answers of a floor."""
    if read == "decode":
        return fixed_answers(profile.usual_class, profile.n_classes)
    places = profile.without if read == "without" else profile.withheld
    if places is None:
        raise UserError(NO_TRAIN)
    return fixed_answers(places, profile.n_classes)
