"""Messages of private numbers: none yet, as the study draws its noise itself."""

from __future__ import annotations

from typing import Any

MESSAGES: dict[str, Any] = {}
