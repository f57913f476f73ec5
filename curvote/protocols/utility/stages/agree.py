"""Stage agree: what each deployment of a mechanism does to every record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from curvote.chain.stage import Here, Rows
from curvote.entropy import SeededEntropy
from curvote.protocols.utility import deployed
from curvote.protocols.utility.given import settings_of
from curvote.protocols.utility.known import known_of
from curvote.protocols.utility.measured import CONFIDENCE
from curvote.protocols.utility.methods import FEATURES
from curvote.utility.deployments.deployment import Deployment, Read
from curvote.utility.deployments.retrain import Refit
from curvote.utility.deployments.scan import deployments, measured
from curvote.utility.engines.base import Draws
from curvote.utility.setting import Setting


def one(here: Here) -> Rows:
    """Return the table ``agreed``: the deployments of one mechanism and epsilon."""
    every = settings_of(here)
    found = [one for sent in every for one in _found(here, sent, every[sent])]
    return {"agreed": deployed.table(found)}


def _found(here: Here, sent: str, setting: Setting) -> Iterator[deployed.Found]:
    """Yield what each deployment does, where ``sent`` names what is sent."""
    known = known_of(here, sent, setting)
    for one in _deployments(here, sent, setting):
        purpose = f"{sent} {one.split} {one.read}"
        seed = int(here.generator(purpose).integers(1 << 31))
        draws = Draws(here.params["deployments.draws"], CONFIDENCE, SeededEntropy(seed))
        found = measured(setting, known, one, draws, Refit(seed=seed))
        # The shares of features, which a projection does not send, are none.
        kept = replace(one, split=None) if one.project else one
        yield kept, one.words(setting.names), found


def _deployments(here: Here, sent: str, setting: Setting) -> list[Deployment]:
    """Return those of the mechanism: floors and the answer's own are no part of it.

    Several coordinates are sent jointly, and read raw; training data have none.
    """
    params, name = here.params, here.params["mechanism"]
    every = deployments(
        setting,
        [params["epsilon"]],
        [name],
        reads=_reads(params["deployments.reads"], setting),
        params=params["deployments.params"].get(name),
    )
    mine = [one for one in every if one.mechanism == name]
    if sent == FEATURES:
        return mine
    alone = len(setting.sensitive) == 1
    fit = (one for one in mine if one.split is None or alone)
    return [replace(one, project=sent) for one in fit]


def _reads(asked: Sequence[Read], setting: Setting) -> list[Read]:
    """Return the ways of reading for which the setting has what they need."""
    needed = {"decode": setting.public, "retrain": setting.train}
    return [read for read in asked if needed.get(read, ()) is not None]
