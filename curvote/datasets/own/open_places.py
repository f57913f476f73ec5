"""The mark of what a new pipelines.yaml leaves to its user."""

from __future__ import annotations

from typing import Final

TO_STATE: Final = "TO_STATE"
