"""Messages of `volunteers`: none, their records are public."""

from __future__ import annotations

from typing import Any

MESSAGES: dict[str, Any] = {}
