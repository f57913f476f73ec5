"""System `counts`: public bins, noised answers, naive Bayes."""

from __future__ import annotations

from curvote.chain.measure import Look, Method
from curvote.systems.cells.counts.messages import MESSAGES, Settings
from curvote.systems.cells.system import cell_system

COUNTS_METHOD = Method(
    "counts",
    "counts (naive Bayes)",
    "Each client tells the public bin of one number and its class, as one noised word; "
    "naive Bayes is made of the counts. It expects no straight line.",
    Look("#7b4173", "P", width=1.6),
    rank=121,
)


SYSTEM = cell_system(
    COUNTS_METHOD, Settings, MESSAGES, ("bins", lambda p: int(p.counts.bins))
)
