"""No message leaves anybody here: nothing is collected."""

from __future__ import annotations

from typing import Any

MESSAGES: dict[str, Any] = {}
