"""Which deployments are looked at, and what each of them does to every record."""

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
from curvote.mechanisms.making import kind, names
from curvote.utility.channel import Channel, Part, channel_of
from curvote.utility.deployments.decode import decoded
from curvote.utility.deployments.deployment import (
    OUTPUT,
    Deployment,
    Read,
    channel,
    checked,
    is_vector,
)
from curvote.utility.deployments.floors import floors
from curvote.utility.deployments.output import responded
from curvote.utility.deployments.retrain import Refit, retrained
from curvote.utility.deployments.splits import Split, splits
from curvote.utility.engines.base import Answers, Draws
from curvote.utility.known import Known
from curvote.utility.measured import Measured, always, measured_from
from curvote.utility.robustness.bound import bound
from curvote.utility.robustness.published import claimed
from curvote.utility.setting import NO_TRAIN, Setting
from curvote.validate import FloatArray


@cache
def scanned(d: int, delta: float = 0.0) -> tuple[str, ...]:
    """Return the mechanisms that can carry ``d`` features, by what their classes say.

    Left out are those that need what has no public default, those whose outputs are no
    numbers, and those without a law, which must be drawn: name them to have them.
    """
    return tuple(name for name in names() if _carries(name, d, delta))


def _carries(name: str, d: int, delta: float) -> bool:
    bounds, middle = np.tile([0.0, 1.0], (d, 1)), np.full((1, d), 0.5)
    needs = _taken(name, {"delta": delta} if delta else {})
    if issubclass(kind(name), LabelMechanism):
        needs["n_classes"] = 3
    try:
        seen = channel_of(name, epsilon=1.0, bounds=bounds, instead=middle[0], **needs)
        return seen.law(middle) is not None and all(map(_numbers, seen.parts))
    except UserError:
        return False


def _numbers(part: Part) -> bool:
    """Say whether outputs are numbers like the inputs: codes of labels are not."""
    made = part.mechanism
    if not isinstance(made, LabelMechanism):
        return True
    return np.array_equal(made.outputs(), np.arange(made.n_classes))


def _taken(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that the mechanism takes."""
    known = signature(kind(name)).parameters
    return {key: value for key, value in params.items() if key in known}


def deployments(
    setting: Setting,
    epsilons: Sequence[float],
    mechanisms: Sequence[str] | None = None,
    *,
    reads: Sequence[Read] | None = None,
    delta: float = 0.0,
    params: Mapping[str, Any] | None = None,
) -> list[Deployment]:
    """Return the floors, then for each total epsilon all that is looked at.

    ``mechanisms`` are `scanned` unless named; ``reads`` are ``raw``, with public
    records ``decode``, and with training data ``retrain``, unless named. Every scalar
    mechanism is there with each of `splits`; it is retrained at its equal split only,
    since that fits models.
    """
    s = len(setting.sensitive)
    chosen = scanned(s, delta) if mechanisms is None else tuple(mechanisms)
    read = _reads(setting) if reads is None else tuple(reads)
    given = {**(params or {}), **({"delta": delta} if delta else {})}
    shares = splits(setting)
    found = floors(setting)
    for epsilon in epsilons:
        found.append(Deployment(OUTPUT, validate.positive(epsilon=epsilon)))
        for name in chosen:
            found += _with(name, epsilon, shares, read, _taken(name, given))
    return found


def _with(
    name: str,
    epsilon: float,
    shares: Sequence[Split],
    reads: Sequence[Read],
    params: dict[str, Any],
) -> list[Deployment]:
    tried = [None] if is_vector(name) else list(shares)
    delta = params.pop("delta", 0.0)
    return [
        Deployment(name, float(epsilon), split, read, delta, params)
        for split in tried
        for read in reads
        if read != "retrain" or split == tried[0]
    ]


def _reads(setting: Setting) -> tuple[Read, ...]:
    decode: tuple[Read, ...] = () if setting.public is None else ("decode",)
    retrain: tuple[Read, ...] = () if setting.train is None else ("retrain",)
    return ("raw", *decode, *retrain)


def measured(
    setting: Setting,
    known: Known,
    deployment: Deployment,
    draws: Draws | None = None,
    refit: Refit | None = None,
) -> Measured:
    """Return what the deployment does to each record.

    ``draws`` says how evidence is drawn where it must be; ``refit`` how models
    are fitted again. A deployment that is none for the setting is a UserError.
    """
    how = Draws() if draws is None else draws
    given = checked(deployment, setting)
    answers = _answers(setting, known, given, how, refit or Refit())
    found = measured_from(answers, known.clean, setting.labels, how.confidence)
    return _bounded(setting, known, given, found)


def _bounded(
    setting: Setting, known: Known, deployment: Deployment, found: Measured
) -> Measured:
    """Add the box bound and the published claim, where the output is read raw."""
    if deployment.read != "raw" or deployment.mechanism == OUTPUT:
        return found
    seen, values = channel(setting, deployment), setting.values
    least = None if known.box is None else bound(seen, values, known.box)
    same = known.clean == known.surface.clean
    return replace(
        found,
        bound=None if least is None else np.where(same, least, 0.0),
        claimed=_claimed(seen, values, known),
    )


def _claimed(seen: Channel, values: FloatArray, known: Known) -> FloatArray | None:
    published = known.published
    return None if published is None else claimed(seen, values, published)


def _answers(
    setting: Setting,
    known: Known,
    deployment: Deployment,
    draws: Draws,
    refit: Refit,
) -> Answers:
    if deployment.free:
        return _floor(setting, known, deployment.read)
    if deployment.mechanism == OUTPUT:
        return responded(known.clean, known.n_classes, deployment.epsilon)
    if deployment.read == "decode":
        return decoded(setting, known, deployment, draws)
    if deployment.read == "retrain":
        return retrained(setting, known, deployment, draws, refit)
    return known.surface.answers(channel(setting, deployment), draws)


def _floor(setting: Setting, known: Known, read: Read) -> Answers:
    if read == "decode":
        return always(known.usual, known.n_classes)
    places = known.without if read == "without" else known.withheld
    if places is None:
        raise UserError(NO_TRAIN)
    return always(places, known.n_classes)
