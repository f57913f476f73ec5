"""Stage refine: the other clients' noised directions, in whitened coordinates."""

from curvote.protocols.direct_two.messages import Refinement
from curvote.protocols.stages.drawn import draw_stage_in_portions

facts, portions = draw_stage_in_portions(Refinement())
