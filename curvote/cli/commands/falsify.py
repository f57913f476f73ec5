"""The command `curvote falsify`: a try at proving that a program tells too much."""

from typing import Annotated

import typer

from curvote.base.errors import UserError
from curvote.cli import terminal


def falsify(
    command: Annotated[
        list[str],
        typer.Argument(
            help="After --: a command. It gets a record where {} stands, or as input."
        ),
    ],
    epsilon: Annotated[float, typer.Option(help="The epsilon that it claims.")],
    record: Annotated[
        list[str], typer.Option(help="A record, as text; twice at least.")
    ],
    delta: Annotated[float, typer.Option(help="The delta that it claims.")] = 0.0,
    runs: Annotated[
        int, typer.Option(min=100, help="How often it is called in all.")
    ] = 1000,
    confidence: Annotated[
        float, typer.Option(help="How sure a proof has to be.")
    ] = 0.999,
    as_json: terminal.Json = False,
) -> None:
    """Prove how much a program tells of its input, from what it prints.

    Output, errors and exit code are compared between records. It exits with 1 if more
    than epsilon is proved.
    """
    from curvote.audit.falsification import falsify as falsify_call

    if len(record) < 2:
        raise UserError("one --record has nothing to be compared with; give two.")
    result = falsify_call(
        command,
        record,
        epsilon=epsilon,
        delta=delta,
        runs=runs,
        confidence=confidence,
    )
    if as_json:
        terminal.print_json(result.to_json())
    else:
        typer.echo(str(result))
    if result.verdict == "violated":
        raise typer.Exit(1)
