"""Message of `joined`: that of `direct`; volunteers send none."""

from curvote.systems.direct.messages import MESSAGES

__all__ = ["MESSAGES"]
