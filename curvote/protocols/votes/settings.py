"""System `votes`: public directions, one vote a client, weights."""

from __future__ import annotations

from curvote.chain.settings import Strict, Whole
from curvote.protocols.direct.settings import Direct
from curvote.protocols.mrma.settings import Watch
from curvote.protocols.settings import Shared


class Votes(Strict):
    """Number of random directions that clients judge.

    Of more than two classes, so many about each split of them into halves.
    """

    directions: Whole = 100


class Settings(Shared):
    """Settings of votes about random directions."""

    votes: Votes = Votes()
    direct: Direct = Direct()
    online: Watch = Watch()
