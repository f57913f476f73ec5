"""Messages of the comparison without privacy: none, as nothing leaves a client."""

from __future__ import annotations

from typing import Any

MESSAGES: dict[str, Any] = {}
