"""Stages of `majority` and of `clean`."""

from curvote.protocols.majority.messages import Label
from curvote.protocols.stages.drawn import draw_stage

facts, one = draw_stage(Label())
