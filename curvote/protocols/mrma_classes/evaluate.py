"""Stage evaluate of `mrma_classes`: each client judges one classifier of one class."""

from curvote.protocols.mrma_classes.messages import ClassVote
from curvote.protocols.stages.drawn import draw_stage

facts, one = draw_stage(ClassVote())
