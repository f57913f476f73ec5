"""No message leaves a server here."""

from __future__ import annotations

from typing import Any

MESSAGES: dict[str, Any] = {}
