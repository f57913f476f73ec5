"""Stage privatize of two rounds: the noised directions of the first clients."""

from curvote.protocols.direct_two.messages import FIRST_ROUND
from curvote.protocols.stages.drawn import draw_stage_in_portions

facts, portions = draw_stage_in_portions(FIRST_ROUND)
