"""The sections of pipelines.yaml that `votes` reads."""

from __future__ import annotations

from curvote.chain.settings import Strict, Whole
from curvote.protocols.direct.settings import Direct
from curvote.protocols.mrma.settings import Watch
from curvote.protocols.settings import Shared


class Votes(Strict):
    """How many random directions the clients of protocol ``votes`` judge.

    Of more than two classes, so many about each split of them into halves.
    """

    directions: Whole = 100


class Settings(Shared):
    """Votes about random directions."""

    votes: Votes = Votes()
    direct: Direct = Direct()
    online: Watch = Watch()
