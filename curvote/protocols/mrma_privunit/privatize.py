"""Stage privatize of `mrma_privunit`: a noised direction from the training clients."""

from curvote.protocols.mrma_privunit.messages import TrainingDirection
from curvote.protocols.stages.drawn import in_order

facts, portions = in_order(TrainingDirection())
