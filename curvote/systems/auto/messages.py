"""Messages of `auto`: none, its choice sends its own."""

from __future__ import annotations

from typing import Any

MESSAGES: dict[str, Any] = {}
