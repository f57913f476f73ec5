"""What every wing says of one table or figure."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True)
class Reproduction:
    """One published table or figure, or a contest.

    ``runs`` are its pipelines, in order; without any it has one of the same name. They
    are run ``replicates`` times unless the user says otherwise. ``quantity`` is what
    the rows hold, in percent.
    """

    name: str
    title: str
    replicates: int
    _: KW_ONLY
    runs: tuple[str, ...] = ()
    quantity: str = "misclassification"

    @property
    def pipelines(self) -> tuple[str, ...]:
        """The pipelines to run, in order."""
        return self.runs or (self.name,)
