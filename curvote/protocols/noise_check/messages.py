"""The message whose noise is looked at: a report of MRMA."""

from __future__ import annotations

from curvote.protocols.mrma.messages import Report

MESSAGES = {"report": Report()}
