"""Which deployments are looked at, and what each of them does to every record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from inspect import signature
from typing import Any

import numpy as np

from curvote import validate
from curvote.errors import UserError
from curvote.mechanisms.making import kind, names
from curvote.utility.deployments.decode import decoded, most_frequent
from curvote.utility.deployments.deployment import (
    OUTPUT,
    Deployment,
    Read,
    built,
    channel,
    checked,
    is_vector,
)
from curvote.utility.deployments.floors import floors
from curvote.utility.deployments.output import responded
from curvote.utility.deployments.retrain import Refit, retrained
from curvote.utility.deployments.splits import splits
from curvote.utility.engines.base import Answers, Draws
from curvote.utility.known import Known
from curvote.utility.measured import Measured, always, measured_from
from curvote.utility.setting import Setting


@cache
def scanned(d: int, delta: float = 0.0) -> tuple[str, ...]:
    """Return the mechanisms that can carry ``d`` features, by what their classes say.

    Left out are those that need what has no public default, those whose outputs are no
    numbers, and those without a law, which must be drawn: name them to have them.
    """
    return tuple(name for name in names() if _carries(name, d, delta))


def _carries(name: str, d: int, delta: float) -> bool:
    try:
        mechanism = built(name, 1.0, d, {"delta": delta} if delta else {})
        low, high = mechanism.domain
        columns = np.full((1, d if is_vector(name) else 1), (low + high) / 2)
        return mechanism.law(mechanism.shaped(columns)) is not None
    except UserError:
        return False


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
    found = floors(setting)
    for epsilon in epsilons:
        total = validate.positive(epsilon=epsilon)
        found.append(Deployment(OUTPUT, total))
        for name in chosen:
            shares = [None] if is_vector(name) else splits(setting)
            found += [
                Deployment(name, total, split, each, _delta(name, delta), params or {})
                for split in shares
                for each in read
                if each != "retrain" or split in {None, splits(setting)[0]}
            ]
    return found


def _reads(setting: Setting) -> tuple[Read, ...]:
    decode: tuple[Read, ...] = () if setting.public is None else ("decode",)
    retrain: tuple[Read, ...] = () if setting.train is None else ("retrain",)
    return ("raw", *decode, *retrain)


def _delta(name: str, delta: float) -> float:
    return delta if "delta" in signature(kind(name)).parameters else 0.0


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
    given = checked(deployment, len(setting.sensitive))
    answers = _answers(setting, known, given, how, refit or Refit())
    return measured_from(answers, known.clean, setting.labels, how.confidence)


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
        return always(most_frequent(known), known.n_classes)
    places = known.without if read == "without" else known.withheld
    if places is None:
        raise UserError("'without' needs training data: give train=(X, y).")
    return always(places, known.n_classes)
