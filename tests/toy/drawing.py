"""Study stages draw the very messages that parties send."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Here
from curvote.protocols.message import Known
from curvote.toy.asked import task
from curvote.toy.messages import MESSAGES
from curvote.toy.tables import PARTIES


def drawn(here: Here, name: str) -> Columns:
    """Return the messages of a party of this repetition."""
    message = MESSAGES[name]
    asks = task(name, here.params[f"level.{message.party}"])
    town = here.rows("gather", "town")
    mine = np.flatnonzero(town["party"] == PARTIES.index(message.party))
    place, colour = town["place"][mine], town["colour"][mine]
    known = Known(place, place, colour)
    parts = here.noise(len(mine))
    sent = [message.draw(asks, known.of(part), noise) for part, noise in parts]
    return {name: np.concatenate([one[name] for one in sent]) for name in sent[0]}
