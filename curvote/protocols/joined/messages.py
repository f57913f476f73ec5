"""Message of `joined`: that of `direct`; volunteers send none."""

from curvote.protocols.direct.messages import MESSAGES

__all__ = ["MESSAGES"]
