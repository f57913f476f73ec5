"""Stage privatize of `tree`: everybody's noised answer to one public question."""

from curvote.protocols.stages.drawn import draw_stage
from curvote.protocols.tree.messages import TREE_ANSWER

facts, one = draw_stage(TREE_ANSWER)
