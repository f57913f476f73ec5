"""Messages of `utility_curves`: none leaves anybody."""

from __future__ import annotations

from typing import Any

MESSAGES: dict[str, Any] = {}
