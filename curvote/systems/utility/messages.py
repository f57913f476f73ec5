"""Messages of `utility` and `utility_curves`: none leaves anybody."""

from typing import Any

MESSAGES: dict[str, Any] = {}
