"""Stage privatize of 1-of-K: a class and a direction from everybody."""

from curvote.protocols.direct_one_of.messages import NamedDirection
from curvote.protocols.stages.drawn import draw_stage_in_portions

facts, portions = draw_stage_in_portions(NamedDirection())
