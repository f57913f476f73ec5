"""Messages of `volunteers`, whose records are public, and of `joined`: as `direct`."""

from collections.abc import Mapping
from typing import Final

from curvote.messages.message import Message
from curvote.systems.direct.messages import MESSAGES

MESSAGES_BY_SYSTEM: Final[Mapping[str, Mapping[str, Message]]] = {
    "volunteers": {},
    "joined": MESSAGES,
}
