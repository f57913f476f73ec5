"""`stump` as data: public thresholds, a noised side and class a client, the best."""

from __future__ import annotations

from curvote.chain.measure import Look, Method
from curvote.protocols.cells.declared import system
from curvote.protocols.stump.messages import MESSAGES
from curvote.protocols.stump.settings import Settings

_STUMP = Method(
    "stump",
    "stump",
    "Each client tells the side of one public threshold and its class, as one noised "
    "word; the threshold that tells most classes rightly is kept.",
    Look("#8c6d31", "v", width=1.6),
    rank=122,
)


SYSTEM = system(_STUMP, Settings, MESSAGES, ("thresholds", lambda _: 2))
