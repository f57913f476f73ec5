"""Evaluation stage: each client judges one classifier in one noised bit."""

from curvote.protocols.mrma.messages import Vote
from curvote.protocols.stages.drawn import draw_stage

facts, one = draw_stage(Vote())
