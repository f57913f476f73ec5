"""Retraining: the model's owner noises its training data as the clients do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from curvote.entropy import SeededEntropy
from curvote.errors import UserError
from curvote.utility.channel import Channel
from curvote.utility.deployments.deployment import Deployment, channel
from curvote.utility.deployments.floors import fitted_again
from curvote.utility.engines.base import Answers, Draws
from curvote.utility.engines.choosing import engine
from curvote.utility.engines.trees.engine import cells
from curvote.utility.known import Known
from curvote.utility.setting import NO_TRAIN, Setting

# A surface of more cells a record costs more than draws do: trees that were fitted to
# noise, which hardly repeats itself, have thresholds without end.
MOST_CELLS = 1e5
_LOOKED_AT = 20


@dataclass(frozen=True)
class Refit:
    """How the model is fitted again: ``copies`` >= 1 of its data, noised from ``seed``.

    The copies are noised independently and stacked.
    """

    copies: int = 4
    seed: int = 0


def retrained(
    setting: Setting,
    known: Known,
    deployment: Deployment,
    draws: Draws,
    refit: Refit,
) -> Answers:
    """Return the answers of the model fitted again on training data noised alike.

    Evidence is the engine's own where its surface is cheap, else drawn. It is about
    this one fit: another seed fits another model.
    """
    if setting.train is None:
        raise UserError(NO_TRAIN)
    features, targets = setting.train
    columns, seen = list(setting.sensitive), channel(setting, deployment)
    rows = np.tile(np.asarray(features, dtype=np.float64), (refit.copies, 1))
    values = np.clip(rows[:, columns], *setting.bounds.T)
    rows[:, columns] = seen.draw(values, SeededEntropy(refit.seed))
    model = fitted_again(setting.model, rows, np.tile(targets, refit.copies))
    return _evaluated(replace(setting, model=model), known, seen, draws)


def _evaluated(setting: Setting, known: Known, seen: Channel, draws: Draws) -> Answers:
    name = known.engine if _cheap(setting, known) else "black_box"
    surface = engine(name).surface(setting.question)
    return surface.answers(seen, draws)


def _cheap(setting: Setting, known: Known) -> bool:
    """Say whether the engine's surface costs about what draws do, or less."""
    if known.engine != "trees":
        return known.engine == "linear"
    few = replace(setting.question, records=setting.records[:_LOOKED_AT])
    return float(cells(few).mean()) <= MOST_CELLS
