"""Retraining: the model's owner noises its training data as the clients do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from curvote.entropy import SeededEntropy
from curvote.errors import UserError
from curvote.utility.channel import Channel
from curvote.utility.deployments.deployment import Deployment, deployment_channel
from curvote.utility.deployments.floors import fit_again
from curvote.utility.engines.base import Answers, Draws
from curvote.utility.engines.choosing import make_engine
from curvote.utility.engines.trees.engine import cell_counts
from curvote.utility.known import Profile
from curvote.utility.setting import NO_TRAIN, Setting

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
