"""Stage surface: what an engine knows of the model, whatever mechanism and epsilon."""

from __future__ import annotations

from collections.abc import Iterator

from curvote.chain.measure import SCORES
from curvote.chain.stage import Here, Rows
from curvote.protocols.utility.given import Settings, settings_of
from curvote.protocols.utility.known import arrays_of
from curvote.protocols.utility.measured import Score, of_clean, of_floor, score_table
from curvote.protocols.utility.methods import FEATURES
from curvote.protocols.utility.packing import packed
from curvote.utility.deployments.floors import floors
from curvote.utility.engines.choosing import engine_for
from curvote.utility.engines.linear import Linear
from curvote.utility.known import Known, known
from curvote.utility.setting import Setting


def one(here: Here) -> Rows:
    """Return ``known``, and the scores of what costs epsilon 0."""
    settings = settings_of(here)
    found = {sent: _known(sent, setting) for sent, setting in settings.items()}
    scores = score_table(_scores(settings, found[FEATURES]))
    return {"known": {"known": packed(arrays_of(found))}, SCORES.name: scores}


def _known(sent: str, setting: Setting) -> Known:
    """Return what is known; of coordinates a bracket would be wider than its price.

    A linear model of them is as cheap as one of features; all others are drawn.
    """
    if sent == FEATURES or engine_for(setting.question)[0].name == Linear.name:
        return known(setting)
    return known(setting, evidence="draws")


def _scores(settings: Settings, plain: Known) -> Iterator[Score]:
    """Yield the scores of the floors, and of the clean answers."""
    setting = settings[FEATURES]
    for floor in floors(setting):
        yield from of_floor(setting, plain, floor)
    yield from of_clean(setting, plain)
