"""Study stages draw the very messages that parties send."""

from __future__ import annotations

import numpy as np

from curvote.chain.stage import Columns, Here
from curvote.toy.messages import MESSAGES
from curvote.toy.tables import PARTIES


def drawn(here: Here, name: str) -> Columns:
    """Return the messages of a party of this repetition."""
    message = MESSAGES[name]
    town = here.rows("gather", "town")
    mine = np.flatnonzero(town["party"] == PARTIES.index(message.party))
    epsilon = here.params[f"level.{message.party}"]
    sent = []
    for part, noise in here.noise(len(mine)):
        known = {column: town[column][mine[part]] for column in ("place", "colour")}
        sent.append(message.draw(epsilon, known, noise))
    return {name: np.concatenate([one[name] for one in sent]) for name in sent[0]}
