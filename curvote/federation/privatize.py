"""Stages of `federated`: polls, exchange and combination of classifiers."""

from curvote.protocols.mrma.messages import Report
from curvote.protocols.stages.drawn import draw_stage

facts, one = draw_stage(Report())
