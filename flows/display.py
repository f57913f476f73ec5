"""Progress of a run: pace, bars on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich import progress
from rich.console import Console

from curvote.base.privacy import Budget
from curvote.flows import lines
from curvote.ledger.amounts import Amount
from curvote.ledger.book import open_existing
from curvote.messages import stages
from curvote.pipeline.config.file import user_file_card
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.settings import describe_choices
from curvote.pipeline.plan.step import Step
from curvote.pipeline.run.planner import Plan

if TYPE_CHECKING:
    from curvote.tasks.context import Progress as Show


# How far the run of this process is, for whoever asks meanwhile.
PROGRESS_METRICS = {
    "blocks_done": "Blocks that are done of the stage under way.",
    "blocks": "Blocks of the stage under way.",
    "remaining_seconds": "How long the stage under way still takes at this pace.",
}
current_progress: dict[str, Any] = {}


@dataclass
class StagePace:
    """The pace of a stage, measured from the first call."""

    _started: float = field(default_factory=time.monotonic)
    _first: int | None = None

    def rate(self, done: int) -> float | None:
        """Return the blocks per second since the first call; None: unknown yet."""
        self._first = done if self._first is None else self._first
        blocks_made, spent = done - self._first, time.monotonic() - self._started
        return blocks_made / spent if blocks_made > 0 and spent > 0 else None

    def remaining_seconds(self, done: int, blocks: int) -> float | None:
        """Return the seconds until all blocks are done, at the pace so far."""
        rate = self.rate(done)
        return None if rate is None else (blocks - done) / rate

    def publish(self, stage: str, done: int, blocks: int) -> None:
        """Set `current` to the progress of a stage."""
        remaining = self.remaining_seconds(done, blocks)
        current_progress.clear()
        current_progress.update(stage=stage, blocks_done=done, blocks=blocks)
        if remaining is not None:
            current_progress["remaining_seconds"] = remaining

    def to_text(self, done: int, blocks: int) -> str:
        """Return rate and remaining time as text, "" if unknown."""
        rate, remaining = self.rate(done), self.remaining_seconds(done, blocks)
        if rate is None or remaining is None:
            return ""
        minutes = round(remaining / 60)
        span = f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
        span = f"{remaining:.0f} s" if remaining < 120 else span
        return f"{rate:.3g}/s, about {span} left"

    def to_numbers(self, done: int, blocks: int) -> dict[str, Any]:
        """Return rate and remaining time as numbers."""
        remaining = self.remaining_seconds(done, blocks)
        numbers = {"rate": self.rate(done), "remaining": remaining}
        return {name: None if v is None else round(v, 3) for name, v in numbers.items()}


# Whoever waits for a long stage hears of it this often, in seconds.
_LINE_SECONDS = 15.0


@contextmanager
def show_progress(plan: Plan) -> Iterator[Show]:
    """Yield the callback of stages: (step, blocks done, blocks in all)."""
    steps = plan.steps_to_run()
    console = Console(stderr=True)
    if not console.is_terminal or lines.is_for_program():
        yield _LineProgress(len(steps))
        return
    columns = [
        progress.TextColumn("{task.description:<44}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.fields[pace]}"),
    ]
    paces: dict[str, StagePace] = {}
    with progress.Progress(*columns, console=console, transient=True) as bars:
        total = bars.add_task("all stages", total=len(steps), pace="")
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
        # Where they are none, the stage's rows are shared.
        numbers = [place[0] for place in step.places if place]
        lines.write_line(
            text,
            level="info",
            stage=step.stage.name,
            cell=str(step.cell) or None,
            replicates=f"{min(numbers)}-{max(numbers)}" if numbers else None,
            done=done,
            blocks=blocks,
            **pace.to_numbers(done, blocks),
        )


def print_raw_files(plan: Plan) -> None:
    """Print the raw files that are read: path, digest and origin."""
    for raw in {file for step in plan.steps for file in step.raw}:
        kind = "SHA-256" if "sha256" in raw.key_entry else "HMAC-SHA-256"  # private
        digest = f"{kind} {raw.public_digest} (decompressed)"
        lines.write_line(f"{raw.path}: {digest}, {raw.origin}")


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
        f"This run releases something about the clients of population {people}. Cap"
        f" of each: {cap}; spent so far, at most: {spent}"
    )
    for step in steps:
        message = stages.stage_message(step.params)
        n = message.invited_count(plan.configured.values())
        words = f"epsilon {step.params['epsilon']:g} of {n} each ({message.who})"
        lines.write_line(f"  {step.stage.name}: {words}")
    return spent == Amount()
