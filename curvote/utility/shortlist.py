"""Which deployments are worth figures of every record: a look at some of one half."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from curvote.utility.deployments.deployment import OUTPUT, Deployment
from curvote.utility.deployments.scan import measured
from curvote.utility.engines.base import Draws
from curvote.utility.engines.choosing import engine
from curvote.utility.halves import halves
from curvote.utility.known import Known, known
from curvote.utility.setting import Places, Setting

# The records that are looked at, of the half that a recommendation is chosen by.
LOOKED_AT = 200


def shortlist(
    setting: Setting,
    about: Known,
    listed: Sequence[Deployment],
    *,
    keep: int = 3,
    draws: Draws | None = None,
    seed: int = 0,
) -> list[Deployment]:
    """Return those of the ``listed`` that come to be measured on every record.

    Floors, randomised response on the answer and equal splits read raw always do; of
    the others the ``keep`` >= 1 of most agreement at each total and for each reading.
    That is found on at most `LOOKED_AT` records of the half by which a recommendation
    of the same ``seed`` is chosen, so the figures of its other half stay honest.
    """
    half, _ = halves(setting, about, seed)
    part = _part(setting, np.flatnonzero(half)[:LOOKED_AT])
    seen = known(part, engine=engine(about.engine))
    chosen = {i for i, each in enumerate(listed) if _always(each)}
    score = {
        i: float(measured(part, seen, each, draws).agreement.mean())
        for i, each in enumerate(listed)
        if i not in chosen
    }
    taken: Counter[tuple[float, str]] = Counter()
    for i in sorted(score, key=lambda i: -score[i]):
        kind = (listed[i].epsilon, listed[i].read)
        taken[kind] += 1
        if taken[kind] <= keep:
            chosen.add(i)
    return [listed[i] for i in sorted(chosen)]


def _always(deployment: Deployment) -> bool:
    shares = deployment.split
    even = shares is not None and len(set(shares)) == 1
    return (
        deployment.free
        or deployment.mechanism == OUTPUT
        or (even and deployment.read == "raw")
    )


def _part(setting: Setting, which: NDArray[np.intp]) -> Setting:
    def some(values: Places | None) -> Places | None:
        return None if values is None else values[which]

    return replace(
        setting,
        records=setting.records[which],
        labels=some(setting.labels),
        reference=some(setting.reference),
        groups=None,
    )
