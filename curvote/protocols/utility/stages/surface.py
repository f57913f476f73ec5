"""Stage surface: what an engine knows of the model, whatever mechanism and epsilon."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.chain.measure import SCORES
from curvote.chain.stage import Rows, StageContext
from curvote.protocols.utility.given import Settings, sent_settings
from curvote.protocols.utility.known import profile_arrays
from curvote.protocols.utility.measured import (
    ScoreRow,
    clean_scores,
    floor_scores,
    score_table,
)
from curvote.protocols.utility.methods import FEATURES
from curvote.protocols.utility.packing import pack_arrays
from curvote.utility.deployments.floors import floor_deployments
from curvote.utility.engines.choosing import choose_engine
from curvote.utility.engines.linear import Linear
from curvote.utility.known import Profile, build_profile
from curvote.utility.setting import Setting


def one(context: StageContext) -> Rows:
    """Return the table ``known``, and the scores of the floors."""
    settings = sent_settings(context)
    profiles = {
        name_sent: _sent_profile(name_sent, setting)
        for name_sent, setting in settings.items()
    }
    scores = score_table(_free_scores(settings, profiles[FEATURES]))
    return {
        "known": {"known": pack_arrays(profile_arrays(profiles))},
        SCORES.name: scores,
    }


def _sent_profile(name_sent: str, setting: Setting) -> Profile:
    """Return the profile of one way to send; coordinates of nonlinear models drawn.

    A linear model of them is as cheap as one of features; all others are drawn.
    """
    if name_sent == FEATURES or choose_engine(setting.question)[0].name == Linear.name:
        return build_profile(setting)
    return build_profile(setting, evidence="draws")


def _free_scores(settings: Settings, profile: Profile) -> Iterator[ScoreRow]:
    """Yield the scores of the floors, and of the clean answers."""
    setting = settings[FEATURES]
    for floor in floor_deployments(setting):
        yield from floor_scores(setting, profile, floor)
    yield from clean_scores(setting, profile)
