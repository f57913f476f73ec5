"""System `stump`: public thresholds, noised answers, the best threshold."""

from __future__ import annotations

from curvote.chain.measure import Look, Method
from curvote.systems.cells.stump.messages import MESSAGES, Settings
from curvote.systems.cells.system import cell_system

STUMP_METHOD = Method(
    "stump",
    "stump",
    "Each client tells the side of one public threshold and its class, as one noised "
    "word; the threshold that tells most classes rightly is kept.",
    Look("#8c6d31", "v", width=1.6),
    rank=122,
)


SYSTEM = cell_system(STUMP_METHOD, Settings, MESSAGES, ("thresholds", lambda _: 2))
