"""Stage privatize of `mrma_classes`: everybody's report, each about one class."""

from curvote.protocols.mrma.privatize import by_everybody
from curvote.protocols.mrma_classes.messages import Report

facts, one = by_everybody(Report())
