"""Page sections on releases, the servers' weights and the value of each source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.reporting.data import NO_VALUE
from curvote.reporting.section import Section
from curvote.reporting.sections.transfer.shown import (
    first_grid,
    nearest_to_one,
    protocol_name,
    server_sizes,
    server_task,
)
from curvote.reporting.source_words import record_word
from curvote.run.results import RunView
from curvote.transfer.forms import form
from curvote.transfer.releasing import release_noise
from curvote.transfer.task import OWN, Task

_LEVEL_TEXTS = {OWN: "kept inside", "public": "public"}


@dataclass(frozen=True)
class ReleaseRow:
    """Texts of one release: ``noise`` is sigma in steps, ``share`` per record.

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
class ReleasesSection(Section):
    """Releases of each setting, by protocol and form."""

    groups: Sequence[tuple[str, Sequence[ReleaseRow]]]
    record: str = "record"

    name: ClassVar[str] = "released"
    place: ClassVar[str] = "releases"

    @property
    def public(self) -> Sequence[str]:
        """Lines on the public facts of a release."""
        sizes = ", ".join(f"{row.server} {row.n}" for row in self.groups[0][1])
        task = (
            "The task: features with their bounds, classes, the form of a release, who"
            " is asked, and what each of them spends."
        )
        return task, f"How many {self.record}s each server holds: {sizes}."


def gather(views: Sequence[RunView], _: pd.DataFrame) -> ReleasesSection:
    """Return the releases of each setting at the page's epsilon."""
    near = nearest_to_one(first_grid(views))
    groups = [(_describe_form(view), list(_release_rows(view))) for view in near]
    return ReleasesSection(groups, record_word(near[0].metadata("ingest")))


def _describe_form(view: RunView) -> str:
    """Return the heading of a cell's releases."""
    task = server_task(view, view.setting("names")[0])
    return (
        f"{protocol_name(view)}: form {task.release} at epsilon"
        f" {view.cell['epsilon']:g}"
    )


def _release_rows(view: RunView) -> Iterator[ReleaseRow]:
    """Yield a row for each server that released something."""
    for server, n in server_sizes(view).items():
        yield _release_row(server_task(view, server), n)


def _release_row(task: Task, n: int) -> ReleaseRow:
    """Return the texts of one release."""
    form_of_release, noise = form(task.release), release_noise(task, n)
    head = task.server, f"{n:,}"
    numbers = f"{form_of_release.length(task):,}"
    if noise is None:
        level_texts = _LEVEL_TEXTS[str(task.epsilon)], NO_VALUE, "0", "0"
        return ReleaseRow(*head, *level_texts, numbers, NO_VALUE)
    budget = task.cost(n)
    return ReleaseRow(
        *head,
        f"{budget.epsilon:g}",
        f"{budget.delta:.3g}",
        f"{noise.sigma:.4g}",
        f"{noise.sigma / form_of_release.unit(task):.3g}",
        numbers,
        f"{noise.worst_log_ratio():.6f}",
    )
