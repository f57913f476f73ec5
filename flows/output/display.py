"""What a run shows while it works: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

from curvote.client.ledger import existing
from curvote.client.ledger_amounts import Amount
from curvote.flows.output import lines
from curvote.flows.output.pace import Pace
from curvote.privacy import Budget
from curvote.protocols.stages import released
from curvote.run.config.parts import reasons
from curvote.run.config.source import Raw
from curvote.run.own_data import examined
from curvote.run.plan.step import Step
from curvote.run.planner import Plan
from curvote.run.project import Project
from curvote.run.release.publishing import Published

if TYPE_CHECKING:  # to print a plan needs no Prefect
    from curvote.tasks.context import Progress as Show

# Whoever waits for a long stage hears of it this often, in seconds.
_SAY_EVERY = 15.0


@contextmanager
def display(plan: Plan) -> Iterator[Show]:
    """Yield the function that stages call with (step, blocks done, blocks in all)."""
    steps = plan.to_run()
    console = Console(stderr=True)
    if console.is_terminal and not lines.is_elsewhere():
        with _bars(console, len(steps)) as show:
            yield show
    else:
        yield _Plain(len(steps))


@contextmanager
def _bars(console: Console, steps: int) -> Iterator[Show]:
    columns = [
        TextColumn("{task.description:<44}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[pace]}"),
    ]
    paces: dict[str, Pace] = {}
    with Progress(*columns, console=console, transient=True) as bars:
        total = bars.add_task("all stages", total=steps, pace="")
        current = bars.add_task("", total=None, pace="")

        def show(step: Step, done: int, blocks: int) -> None:
            pace = paces.setdefault(step.name, Pace())
            pace.show(step.stage.name, done, blocks)
            bars.update(
                current,
                description=step.name,
                completed=done,
                total=blocks,
                pace=pace.words(done, blocks),
            )
            if done == blocks:
                bars.advance(total)

        yield show


@dataclass
class _Plain:
    """A line for each stage that is done, and now and then for one that takes long."""

    steps: int
    started: float = field(default_factory=time.monotonic)
    finished: int = 0
    _said: float = field(default_factory=time.monotonic)
    _paces: dict[str, Pace] = field(default_factory=dict)

    def __call__(self, step: Step, done: int, blocks: int) -> None:
        now = time.monotonic()
        pace = self._paces.setdefault(step.name, Pace())
        pace.show(step.stage.name, done, blocks)
        over = done == blocks
        if not over and now - self._said < _SAY_EVERY:
            return
        self._said = now
        self.finished += over
        spent = f"{now - self.started:.1f} s"
        if over:
            text = f"[{self.finished}/{self.steps}] {step.name} ({spent})"
        else:
            words = pace.words(done, blocks)
            text = f"{step.name}: {done} of {blocks} blocks ({spent}, {words})"
        lines.say(
            text,
            level="info",
            stage=step.stage.name,
            cell=str(step.cell) or None,
            replicates=_replicates(step),
            done=done,
            blocks=blocks,
            **pace.figures(done, blocks),
        )


def _replicates(step: Step) -> str | None:
    """Return which replicates a step is about, None: what all of them share."""
    found = [place[0] for place in step.places if place]
    return f"{min(found)}-{max(found)}" if found else None


def tell_raw(plan: Plan) -> None:
    """Say which file is read: its place, origin, and what may be told of its digest."""
    for raw in {file for step in plan.steps for file in step.raw}:
        lines.say(f"{raw.path}: {told(raw)}, {raw.origin}")


def tell_own(project: Project, plan: Plan) -> None:
    """Say in one line what of the user's own file was filled, clipped or left out.

    A file that was read before was spoken of then. The counts are for its owner's
    terminal: they are kept out of lines that a program gathers.
    """
    reads = any(step.stage.raw for step in plan.to_run())
    if reads and not lines.is_elsewhere():
        found = examined(project, plan.configured)
        line = found.line() if found else None
        if line:
            lines.say(f"{line} (`curvote check {plan.configured.name}`)")


def told(raw: Raw) -> str:
    """Return a file's digest, or in place of a private one's its keyed digest."""
    kind = "SHA-256" if "sha256" in raw.counted else "HMAC-SHA-256"
    return f"{kind} {raw.told} (decompressed)"


def tell_choices(plan: Plan) -> None:
    """Say what was taken where the choice was left open, and why."""
    for line in reasons(plan.configured.values()):
        lines.say(line)


def tell_spending(project: Project, plan: Plan) -> bool:
    """Say who is about to spend how much, and of which cap.

    Return whether it is the first that is released about these people. What comes by
    envelope is drawn, and agreed to, by its owners.
    """
    steps = [s for s in plan.to_run() if s.release and not s.release.by_envelope]
    if not steps:
        return False
    about = steps[0].components["release"]
    people, cap = about["population"], Budget(**about["cap"])
    spent = Amount()
    with existing(project.ledger) or nullcontext() as ledger:
        if ledger:
            spent = ledger.worst(people)
    lines.say(
        f"releases about population {people}: cap {cap} for each client, the largest"
        f" total so far {spent}"
    )
    for step in steps:
        message = released.message(step.params)
        n = message.invited(plan.configured.values())
        words = f"epsilon {step.params['epsilon']:g} of each {message.who} ({n})"
        lines.say(f"  {step.stage.name}: {words}")
    return spent == Amount()


def tell_published(published: Iterator[Published]) -> None:
    """Say what was published, so that envelopes can come."""
    for opened in published:
        print(f"published: {opened.task}\ninvitations: {opened.invitations}")
        print(f"waiting for {opened.waits_for} envelopes", flush=True)
