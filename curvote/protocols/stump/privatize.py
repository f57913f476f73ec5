"""Stage privatize of `stump`: everybody's noised answer to one public question."""

from curvote.protocols.stages.drawn import draw_stage
from curvote.protocols.stump.messages import STUMP_ANSWER

facts, one = draw_stage(STUMP_ANSWER)
