"""Public facts of several servers before anything is released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from curvote.errors import UserError
from curvote.transfer.task import Level


@dataclass(frozen=True)
class PublicSetup:
    """Numbers of features and classes, and each server's size and level.

    ``sizes`` are numbers of records, None where only the server itself will say it.
    """

    d: int
    classes: int
    sizes: Mapping[str, int | None]
    levels: Mapping[str, Level]
    target: str

    def require_sizes(self) -> dict[str, int]:
        """Return all sizes; an unknown one is a UserError."""
        unknown = [name for name, n in self.sizes.items() if n is None]
        if unknown:
            raise UserError(
                f"how many records {unknown[0]} holds is not known yet, and the rule"
                " asks for it; name the release and its params."
            )
        return {name: n for name, n in self.sizes.items() if n is not None}
