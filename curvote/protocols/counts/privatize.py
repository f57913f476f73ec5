"""Stage privatize of `counts`: everybody's noised answer to one public question."""

from curvote.protocols.counts.messages import COUNTS_ANSWER
from curvote.protocols.stages.drawn import draw_stage

facts, one = draw_stage(COUNTS_ANSWER)
