"""Starter pipelines.yaml, made of the columns of a user's file."""

from __future__ import annotations

from typing import Final

TO_STATE: Final = "TO_STATE"
