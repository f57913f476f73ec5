"""What each server released: about how many records, at what cost, how noised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.reporting.data import NOTHING
from curvote.reporting.section import Section
from curvote.reporting.sections.transfer.shown import (
    asked,
    called,
    near_one,
    of_first,
    sizes,
)
from curvote.reporting.source_words import record_of
from curvote.run.results import RunView
from curvote.transfer.forms import form
from curvote.transfer.releasing import noise_of
from curvote.transfer.task import OWN, Task

_WORDS = {OWN: "kept inside", "public": "public"}


@dataclass(frozen=True)
class Row:
    """One release: ``noise`` is sigma in whole steps, ``share`` in that of a record.

    ``loss`` is the exact epsilon at the stated delta, from the sampler's integers.
    """

    server: str
    n: str
    epsilon: str
    delta: str
    noise: str
    share: str
    numbers: str
    loss: str


@dataclass(frozen=True, eq=False)
class Released(Section):
    """Releases by what their protocol and form are called."""

    groups: Sequence[tuple[str, Sequence[Row]]]
    record: str = "record"

    name: ClassVar[str] = "released"
    place: ClassVar[str] = "releases"

    @property
    def public(self) -> Sequence[str]:
        """What a release rests on, and what it tells without noise."""
        sizes = ", ".join(f"{row.server} {row.n}" for row in self.groups[0][1])
        task = (
            "The task: features with their bounds, classes, the form of a release, who"
            " is asked, and what each of them spends."
        )
        return task, f"How many {self.record}s each server holds: {sizes}."


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Released:
    """Return the releases of each setting, at the epsilon that the page speaks of."""
    near = near_one(of_first(views))
    groups = [(_form(view), list(_rows(view))) for view in near]
    return Released(groups, record_of(near[0].facts("ingest")))


def _form(view: RunView) -> str:
    task = asked(view, view.setting("names")[0])
    return f"{called(view)}: form {task.release} at epsilon {view.cell['epsilon']:g}"


def _rows(view: RunView) -> Iterator[Row]:
    for server, n in sizes(view).items():
        yield _row(asked(view, server), n)


def _row(task: Task, n: int) -> Row:
    kind, noise = form(task.release), noise_of(task, n)
    known = task.server, f"{n:,}"
    numbers = f"{kind.length(task):,}"
    if noise is None:
        told = _WORDS[str(task.epsilon)], NOTHING, "0", "0"
        return Row(*known, *told, numbers, NOTHING)
    budget = task.spends(n)
    return Row(
        *known,
        f"{budget.epsilon:g}",
        f"{budget.delta:.3g}",
        f"{noise.sigma:.4g}",
        f"{noise.sigma / kind.unit(task):.3g}",
        numbers,
        f"{noise.worst_log_ratio():.6f}",
    )
