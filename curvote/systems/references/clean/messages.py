"""Messages of `clean`: none, no client sends anything."""

from __future__ import annotations

from typing import Any

MESSAGES: dict[str, Any] = {}
