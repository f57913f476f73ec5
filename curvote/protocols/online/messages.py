"""The messages of MRMA, as clients in arrivals send them."""

from __future__ import annotations

from curvote.protocols.mrma.messages import MESSAGES

__all__ = ["MESSAGES"]
