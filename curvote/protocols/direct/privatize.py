"""Stages of `direct` and of its variants: reports, means and scores."""

from curvote.protocols.direct.messages import Direction
from curvote.protocols.stages.drawn import draw_stage_in_portions

facts, portions = draw_stage_in_portions(Direction())
