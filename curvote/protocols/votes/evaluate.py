"""Stage evaluate of `votes`: everybody judges one direction, in one noised bit."""

from curvote.protocols.stages.drawn import draw_stage
from curvote.protocols.votes.messages import DirectionVote

facts, one = draw_stage(DirectionVote())
