"""Messages of `transfer_clean`: none leaves a server."""

from __future__ import annotations

from typing import Any

MESSAGES: dict[str, Any] = {}
