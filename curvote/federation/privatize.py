"""Stage privatize of many servers: the training clients' reports, no comparison."""

from curvote.protocols.mrma.messages import Report
from curvote.protocols.stages.drawn import by

facts, one = by(Report())
