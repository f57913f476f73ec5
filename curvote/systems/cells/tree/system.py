"""System `tree`: a public grid, noised answers, a class for each leaf."""

from __future__ import annotations

from curvote.chain.measure import Look, Method
from curvote.systems.cells.system import cell_system
from curvote.systems.cells.tree.messages import MESSAGES, Settings

TREE_METHOD = Method(
    "tree",
    "tree",
    "Each client tells its cell of a public recursive grid and its class, as one "
    "noised word; each cell gets the class that most in it have.",
    Look("#637939", "^", width=1.6),
    rank=123,
)


SYSTEM = cell_system(
    TREE_METHOD, Settings, MESSAGES, ("cells", lambda p: int(p.tree.cells)), "seed"
)
