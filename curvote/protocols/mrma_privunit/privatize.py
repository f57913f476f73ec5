"""Stage privatize of `mrma_privunit`: a noised direction from the training clients."""

from curvote.protocols.mrma_privunit.messages import TrainingDirection
from curvote.protocols.stages.drawn import by

facts, one = by(TrainingDirection(), first=True)
