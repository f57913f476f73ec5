"""The command `curvote client`: the owner's side, without any project.

All it needs is a curve, the published task, an invitation and the client's own ledger.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvote.errors import UserError

if TYPE_CHECKING:
    from curvote.client.ledger import Ledger
    from curvote.client.record import Given
    from curvote.envelope import Invitation
    from curvote.privacy import Budget
    from curvote.task import Task

app = typer.Typer(
    name="client",
    help="Release one noised message about your own curve, once.",
    no_args_is_help=True,
)

TaskFile = Annotated[Path, typer.Option("--task", help="The published task (JSON).")]
Curve = Annotated[
    Path, typer.Option("--curve", help="CSV or Parquet: one row or one column.")
]
Label = Annotated[
    str, typer.Option("--label", help="Your class, as the task names it.")
]
InvitationFile = Annotated[
    Path, typer.Option("--invitation", help="The invitation that you were sent (JSON).")
]
LedgerFile = Annotated[
    Path, typer.Option("--ledger", help="Your record of what was released about you.")
]
Outbox = Annotated[Path, typer.Option("--outbox", help="Where the envelope is put.")]
ClientId = Annotated[str, typer.Option("--client", help="Your name in your ledger.")]
Cap = Annotated[
    float | None,
    typer.Option("--cap", help="Most epsilon you spend in all (default: the task's)."),
]
NewRelease = Annotated[
    bool, typer.Option("--new-release", help="Draw anew, and spend again.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

LEDGER = Path("curvote-ledger.sqlite")
OUTBOX = Path("outbox")


def _command(name: str, asks: str | None, text: str) -> None:
    """Add a command that answers tasks asking for ``asks``; None: any task."""

    def command(
        *,
        task: TaskFile,
        curve: Curve,
        label: Label,
        invitation: InvitationFile,
        ledger: LedgerFile = LEDGER,
        outbox: Outbox = OUTBOX,
        client: ClientId = "me",
        cap: Cap = None,
        new_release: NewRelease = False,
        as_json: Json = False,
    ) -> None:
        who = _Client(ledger, outbox, client, cap, new_release)
        _say(who.release(asks, task, curve, label, invitation), as_json)

    app.command(name, help=text)(command)


_command("report", "report", "Release your noised curve and label, once.")
_command("vote", "vote", "Release one noised bit: was the classifier right for you?")
_command("answer", None, "Release whatever the task asks for, of whatever protocol.")


@dataclass(frozen=True)
class _Client:
    """Who releases, from which ledger, up to which cap."""

    ledger: Path
    outbox: Path
    name: str
    cap: float | None
    anew: bool

    def release(
        self,
        asks: str | None,
        task_file: Path,
        curve: Path,
        label: str,
        invitation: Path,
    ) -> dict[str, Any]:
        """Check everything, release at most once, and say what happened."""
        from curvote.client import outbox
        from curvote.client.ledger import Ledger
        from curvote.client.record import read_form
        from curvote.protocols.judging import check_invitation

        task = _task(task_file, asks)
        invited = _invitation(invitation)
        check_invitation(task, invited)
        draw = _Draw(task, read_form(curve, label, task), invited.about)
        with Ledger(self.ledger) as ledger:
            known = outbox.latest(ledger, task, self.name)
            path = outbox.release(
                draw,
                task=task,
                invitation=invited,
                client=self.name,
                number=known + 1 if self.anew else max(known, 1),
                ledger=ledger,
                cap=self._cap(task),
                outbox=self.outbox,
            )
            return self._summary(task, path, ledger) | {"new": draw.done}

    def _cap(self, task: Task) -> Budget:
        from curvote import validate
        from curvote.privacy import Budget

        if self.cap is None:
            return task.budget
        share = validate.positive(cap=self.cap) / task.epsilon
        return Budget(self.cap, task.budget.delta * share)

    def _summary(self, task: Task, path: Path, ledger: Ledger) -> dict[str, Any]:
        from curvote.client.ledger import total

        cap = self._cap(task).epsilon
        spent, _ = total(ledger.releases_of("self", self.name))
        return {
            "message": task.asks,
            "epsilon": task.epsilon,
            "delta": task.budget.delta,
            "envelope": str(path),
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "cap": cap,
            "left": max(cap - spent, 0.0),
        }


@dataclass
class _Draw:
    """The client's message, drawn with the operating system's entropy when called."""

    task: Task
    given: Given
    about: int | None
    done: bool = False

    def __call__(self) -> dict[str, Any]:
        from curvote.entropy import SystemEntropy
        from curvote.protocols.answering import answer

        self.done = True
        return answer(self.task, self.given, self.about, SystemEntropy())


def _task(path: Path, asks: str | None) -> Task:
    from curvote.protocols.judging import judged

    try:
        task = judged(_json(path))
    except UserError as error:
        raise UserError(f"{path} is no task description: {error}") from None
    if asks not in (None, task.asks):
        raise UserError(
            f"{path} asks for a {task.asks}: use `curvote client {task.asks}`."
        )
    return task


def _invitation(path: Path) -> Invitation:
    from curvote.envelope import Invitation

    try:
        return Invitation.from_json(_json(path))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no JSON document: {error}.") from None


def _say(done: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(done, indent=1))
        return
    message, epsilon = done["message"], f"epsilon {done['epsilon']:g}"
    typer.echo(
        f"released one {message}, {epsilon}"
        if done["new"]
        else f"this {message} was released before: nothing was drawn, nothing spent"
    )
    typer.echo(f"envelope  {done['envelope']}\nSHA-256   {done['sha256']}")
    typer.echo(f"left      epsilon {done['left']:g} of your cap of {done['cap']:g}")
