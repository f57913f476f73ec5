"""Message of `drift`: MRMA's report, held against the records."""

from __future__ import annotations

from curvote.protocols.mrma.messages import Report

MESSAGES = {"report": Report()}
