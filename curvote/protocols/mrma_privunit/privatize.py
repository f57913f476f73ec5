"""Stage privatize of `mrma_privunit`: a noised direction from the training clients."""

from curvote.protocols.mrma_privunit.messages import TrainingDirection
from curvote.protocols.stages.drawn import draw_stage_in_portions

facts, portions = draw_stage_in_portions(TrainingDirection())
