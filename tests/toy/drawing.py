"""Study stages draw the very messages that parties send."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, StageContext
from curvote.messages.message import ClientData
from curvote.toy.asked import task
from curvote.toy.messages import MESSAGES
from curvote.toy.tables import PARTIES


def drawn(context: StageContext, name: str) -> Columns:
    """Return the messages of a party of this repetition."""
    message = MESSAGES[name]
    asks = task(name, context.params[f"level.{message.party}"])
    town = context.rows("gather", "town")
    mine = np.flatnonzero(town["party"] == PARTIES.index(message.party))
    place, colour = town["place"][mine], town["colour"][mine]
    known = ClientData(place, place, colour)
    parts = context.noise(len(mine))
    sent = [message.draw(asks, known.subset(part), noise) for part, noise in parts]
    return {name: np.concatenate([one[name] for one in sent]) for name in sent[0]}
