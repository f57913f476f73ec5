"""Stage refine: the other clients' noised directions, in whitened coordinates."""

from curvote.protocols.direct_two.messages import Refinement
from curvote.protocols.stages.drawn import in_order

facts, portions = in_order(Refinement())
