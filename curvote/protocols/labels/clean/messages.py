"""No message leaves a client here."""

from __future__ import annotations

from typing import Any

MESSAGES: dict[str, Any] = {}
