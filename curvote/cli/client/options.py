"""Options of the commands of `curvote client`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_LABEL = typer.Option("--label", help="Your class, as the task names it.")
_INVITATION = typer.Option(
    "--invitation", help="The invitation that you were sent (JSON)."
)

TaskFile = Annotated[Path, typer.Option("--task", help="The published, signed task.")]
Curve = Annotated[
    Path, typer.Option("--curve", help="CSV or Parquet: one row or one column.")
]
TableFile = Annotated[
    Path, typer.Option("--table", help="CSV or Parquet: one row a record.")
]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label", help="The column with the class: the one of your form."),
]
IdColumn = Annotated[
    str | None,
    typer.Option("--id", help="The column that names each record: that of your form."),
]
NewPeople = Annotated[
    bool,
    typer.Option(
        "--new-people",
        help="Say that records which your ledger does not know are other people.",
    ),
]
FormFile = Annotated[
    Path | None,
    typer.Option("--form", help="Settle the form of your table, too (YAML)."),
]
ClassList = Annotated[
    str | None,
    typer.Option(
        "--classes",
        help="The classes you agree to, as in no,yes: a task with others is refused"
        " before your label is looked at. Say them where no terminal is.",
    ),
]
Label = Annotated[str, _LABEL]
OwnLabelOption = Annotated[str | None, _LABEL]
InvitationFile = Annotated[Path, _INVITATION]
OneInvitation = Annotated[Path | None, _INVITATION]
LabelTable = Annotated[
    Path | None,
    typer.Option("--table", help="CSV or Parquet with the columns record and label."),
]
Invitations = Annotated[
    Path | None,
    typer.Option(
        "--invitations", help="Their folder, or one file with one a line (.jsonl)."
    ),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        help="Your record of what was released about you (default: one per user).",
    ),
]
Outbox = Annotated[
    Path | None,
    typer.Option("--outbox", help="Where the envelope is put (default: one per user)."),
]
NewRelease = Annotated[
    bool, typer.Option("--new-release", help="Draw anew, and spend again.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Agree beforehand: nothing is asked.")]
Name = Annotated[
    str | None, typer.Option("--name", help="Your name in your ledger (default: me).")
]
Cap = Annotated[
    float | None,
    typer.Option("--cap", help="The most epsilon you will ever spend (default: 2)."),
]
CapDelta = Annotated[
    float | None,
    typer.Option("--cap-delta", help="The most delta you will ever spend."),
]
Server = Annotated[
    str | None,
    typer.Option("--server", help="Fingerprint of the only server that you answer."),
]
Send = Annotated[
    str | None,
    typer.Option(
        "--send",
        metavar="URL",
        help="Post the envelope to this service, and try again until it is accepted.",
    ),
]
