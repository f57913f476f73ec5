"""What a run shows while it works: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

from curvote.run.config.parts import reasons
from curvote.run.config.source import Raw
from curvote.run.plan.step import Step
from curvote.run.planner import Plan
from curvote.run.release.publishing import Published
from flows.terminal import numbered

if TYPE_CHECKING:  # to print a plan needs no Prefect
    from tasks.perform import Progress as Show


@contextmanager
def display(plan: Plan) -> Iterator[Show]:
    """Yield the function that stages call with (step, blocks done, blocks in all)."""
    steps = plan.to_run()
    console = Console(stderr=True)
    if not console.is_terminal:
        say = numbered(len(steps))

        def line(step: Step, done: int, blocks: int) -> None:
            if done == blocks:
                say(step.name)

        yield line
        return
    columns = [
        TextColumn("{task.description:<44}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    ]
    with Progress(*columns, console=console, transient=True) as bars:
        total = bars.add_task("all stages", total=len(steps))
        current = bars.add_task("", total=None)

        def show(step: Step, done: int, blocks: int) -> None:
            bars.update(current, description=step.name, completed=done, total=blocks)
            if done == blocks:
                bars.advance(total)

        yield show


def tell_raw(plan: Plan) -> None:
    """Say which file is read: its place, origin, and what may be told of its digest."""
    for raw in {file for step in plan.steps for file in step.raw}:
        line = f"{raw.path}: {told(raw)}, {raw.origin}"
        print(line, file=sys.stderr, flush=True)


def told(raw: Raw) -> str:
    """Return a file's digest, or in place of a private one's its keyed digest."""
    kind = "SHA-256" if "sha256" in raw.counted else "HMAC-SHA-256"
    return f"{kind} {raw.told} (decompressed)"


def tell_choices(plan: Plan) -> None:
    """Say what was taken where the choice was left open, and why."""
    for line in reasons(plan.configured.values()):
        print(line, file=sys.stderr, flush=True)


def tell_published(published: Iterator[Published]) -> None:
    """Say what was published, so that envelopes can come."""
    for opened in published:
        print(f"published: {opened.task}\ninvitations: {opened.invitations}")
        print(f"waiting for {opened.waits_for} envelopes", flush=True)
