"""No message leaves a client here: volunteers' records are public."""

from __future__ import annotations

from typing import Any

MESSAGES: dict[str, Any] = {}
