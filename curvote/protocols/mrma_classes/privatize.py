"""Stages of `mrma_classes`: MRMA's, each report and vote about one class."""

from curvote.protocols.mrma.privatize import report_stage
from curvote.protocols.mrma_classes.messages import ClassReport

facts, one = report_stage(ClassReport())
