"""What is public of several servers before anything is released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from curvote.errors import UserError
from curvote.transfer.task import Level


@dataclass(frozen=True)
class Setup:
    """How many features and classes there are, and what each server holds and spends.

    ``sizes`` are numbers of records, None where only the server itself will say it.
    """

    d: int
    classes: int
    sizes: Mapping[str, int | None]
    levels: Mapping[str, Level]
    target: str

    def known_sizes(self) -> dict[str, int]:
        """Return all sizes; one that is not known yet is a UserError."""
        absent = [name for name, n in self.sizes.items() if n is None]
        if absent:
            raise UserError(
                f"how many records {absent[0]} holds is not known yet, and the rule"
                " asks for it; name the release and its params."
            )
        return {name: n for name, n in self.sizes.items() if n is not None}
