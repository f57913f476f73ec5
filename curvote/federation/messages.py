"""The messages of MRMA, as the clients of many servers send them."""

from __future__ import annotations

from curvote.protocols.mrma.messages import MESSAGES

__all__ = ["MESSAGES"]
