"""Message of `drift`: MRMA's report, held against the records."""

from __future__ import annotations

from curvote.systems.mrma.messages import Report

MESSAGES = {"report": Report()}
