"""Reproductions of tables and figures: entries, papers, comparison and files."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Final

# What a row may hold, and how the terminal says it. All but a ``value`` are shares,
# in percent; a value is in the unit of what it is a value of.
QUANTITIES: Final = {
    "misclassification": "misclassification in %",
    "accuracy": "accuracy in %",
    "f1": "F1 in %",
    "agreement": "agreement with the clean answer in %",
    "indicator": "agreement behind the paper's privacy indicator in %",
    "concentration": "probability that the output is near the value in %",
    "share": "share in %",
    "value": "value",
}


@dataclass(frozen=True)
class Reproduction:
    """One published table or figure of a ``paper``, or a contest.

    ``runs`` are its pipelines, in order: None is one of the same name, () none at all
    (formulas alone). They are run ``replicates`` times unless the user says otherwise.
    ``quantity`` is one of ``QUANTITIES``, what its rows hold unless they say otherwise;
    ``measured`` says it in other words.
    """

    name: str
    title: str
    replicates: int
    _: KW_ONLY
    paper: str
    runs: tuple[str, ...] | None = None
    quantity: str = "misclassification"
    measured: str = ""

    @property
    def pipelines(self) -> tuple[str, ...]:
        """The pipelines to run, in order."""
        return (self.name,) if self.runs is None else self.runs

    @property
    def heading(self) -> str:
        """The paper, the title and the measure."""
        measure = self.measured or QUANTITIES[self.quantity]
        error = ", ± one standard error" if self.pipelines else ""
        return f"{self.paper}, {self.title}: {measure}{error}"
