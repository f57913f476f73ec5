"""Progress of a run: bars on a terminal, lines elsewhere, and its announcements."""

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

from curvote.client.ledger import open_existing
from curvote.client.ledger_amounts import Amount
from curvote.flows.output import lines
from curvote.flows.output.pace import StagePace
from curvote.privacy import Budget
from curvote.protocols.stages import released
from curvote.run.config.parts import describe_choices
from curvote.run.config.source import RawInput
from curvote.run.own_data import user_file_card
from curvote.run.plan.step import Step
from curvote.run.planner import Plan
from curvote.run.project import Project
from curvote.run.release.publishing import PublishedRound

if TYPE_CHECKING:  # to print a plan needs no Prefect
    from curvote.tasks.context import Progress as Show

# Whoever waits for a long stage hears of it this often, in seconds.
_LINE_SECONDS = 15.0


@contextmanager
def show_progress(plan: Plan) -> Iterator[Show]:
    """Yield the callback of stages: (step, blocks done, blocks in all)."""
    steps = plan.steps_to_run()
    console = Console(stderr=True)
    if console.is_terminal and not lines.is_for_program():
        with _show_bars(console, len(steps)) as show:
            yield show
    else:
        yield _LineProgress(len(steps))


@contextmanager
def _show_bars(console: Console, steps: int) -> Iterator[Show]:
    columns = [
        TextColumn("{task.description:<44}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[pace]}"),
    ]
    paces: dict[str, StagePace] = {}
    with Progress(*columns, console=console, transient=True) as bars:
        total = bars.add_task("all stages", total=steps, pace="")
        current = bars.add_task("", total=None, pace="")

        def update_bars(step: Step, done: int, blocks: int) -> None:
            pace = paces.setdefault(step.name, StagePace())
            pace.publish(step.stage.name, done, blocks)
            bars.update(
                current,
                description=step.name,
                completed=done,
                total=blocks,
                pace=pace.to_text(done, blocks),
            )
            if done == blocks:
                bars.advance(total)

        yield update_bars


@dataclass
class _LineProgress:
    """Progress as lines: one for each finished stage, and some for long ones."""

    steps: int
    started: float = field(default_factory=time.monotonic)
    finished: int = 0
    _last_line: float = field(default_factory=time.monotonic)
    _paces: dict[str, StagePace] = field(default_factory=dict)

    def __call__(self, step: Step, done: int, blocks: int) -> None:
        now = time.monotonic()
        pace = self._paces.setdefault(step.name, StagePace())
        pace.publish(step.stage.name, done, blocks)
        over = done == blocks
        if not over and now - self._last_line < _LINE_SECONDS:
            return
        self._last_line = now
        self.finished += over
        spent = f"{now - self.started:.1f} s"
        if over:
            text = f"[{self.finished}/{self.steps}] {step.name} ({spent})"
        else:
            words = pace.to_text(done, blocks)
            text = f"{step.name}: {done} of {blocks} blocks ({spent}, {words})"
        lines.write_line(
            text,
            level="info",
            stage=step.stage.name,
            cell=str(step.cell) or None,
            replicates=_replicate_range(step),
            done=done,
            blocks=blocks,
            **pace.to_numbers(done, blocks),
        )


def _replicate_range(step: Step) -> str | None:
    """Return the range of a step's replicates; None: its rows are shared."""
    numbers = [place[0] for place in step.places if place]
    return f"{min(numbers)}-{max(numbers)}" if numbers else None


def print_raw_files(plan: Plan) -> None:
    """Print the raw files that are read: path, digest and origin."""
    for raw in {file for step in plan.steps for file in step.raw}:
        lines.write_line(f"{raw.path}: {describe_digest(raw)}, {raw.origin}")


def print_user_file(project: Project, plan: Plan) -> None:
    """Print what was filled, clipped or left out of the user's own file.

    A file that was read before was spoken of then. The counts are for its owner's
    terminal: they are kept out of lines that a program gathers.
    """
    reads = any(step.stage.raw for step in plan.steps_to_run())
    if reads and not lines.is_for_program():
        card = user_file_card(project, plan.configured)
        line = card.summary_line() if card else None
        if line:
            lines.write_line(f"{line} (`curvote check {plan.configured.name}`)")


def describe_digest(raw: RawInput) -> str:
    """Return a file's digest, or its keyed digest if it is private."""
    kind = "SHA-256" if "sha256" in raw.key_entry else "HMAC-SHA-256"
    return f"{kind} {raw.public_digest} (decompressed)"


def print_choices(plan: Plan) -> None:
    """Print the choices that were left to a rule, with reasons."""
    for line in describe_choices(plan.configured.values()):
        lines.write_line(line)


def print_spending(project: Project, plan: Plan) -> bool:
    """Print who is about to spend how much; return whether it is the first time.

    Return whether it is the first that is released about these people. What comes by
    envelope is drawn, and agreed to, by its owners.
    """
    steps = [s for s in plan.steps_to_run() if s.release and not s.release.by_envelope]
    if not steps:
        return False
    about = steps[0].components["release"]
    people, cap = about["population"], Budget(**about["cap"])
    spent = Amount()
    with open_existing(project.ledger) or nullcontext() as ledger:
        if ledger:
            spent = ledger.most_spent_in(people)
    lines.write_line(
        f"releases about population {people}: cap {cap} for each client, the largest"
        f" total so far {spent}"
    )
    for step in steps:
        message = released.stage_message(step.params)
        n = message.invited_count(plan.configured.values())
        words = f"epsilon {step.params['epsilon']:g} of each {message.who} ({n})"
        lines.write_line(f"  {step.stage.name}: {words}")
    return spent == Amount()


def print_published(published: Iterator[PublishedRound]) -> None:
    """Print the published tasks and invitations."""
    for opened in published:
        print(f"published: {opened.task}\ninvitations: {opened.invitations}")
        print(f"waiting for {opened.waits_for} envelopes", flush=True)
