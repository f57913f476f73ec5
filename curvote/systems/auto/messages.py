"""Messages of `auto`: none, its choice sends its own."""

from typing import Any

MESSAGES: dict[str, Any] = {}
