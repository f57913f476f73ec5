"""Commands of private labels: what a private column costs, before anybody is asked."""

from __future__ import annotations

import json
import math
from typing import Annotated

import typer

from curvote.base.errors import UserError
from curvote.chain.commands import align_columns

COMMANDS = {"advise": "curvote.systems.labels.commands:advise"}

Private = Annotated[
    list[str],
    typer.Option("--private", help="NAME=words: a column as private as the label."),
]
Levels = Annotated[list[float], typer.Option("--epsilon", help="Epsilon of a code.")]
Labels = Annotated[int, typer.Option("--labels", min=2, help="How many labels.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def advise(
    private: Private, epsilon: Levels, labels: Labels = 2, as_json: Json = False
) -> None:
    """With --private: say what codes gain if such a column is public or left out."""
    from curvote.systems.labels.codes import encoders

    words = dict(_parse_column(text) for text in private)
    total, rows = labels * math.prod(words.values()), []
    for level in epsilon:
        signals = {}
        for k in {total, *(total // size for size in words.values())}:
            name = encoders.best_encoder(k, level)
            law = encoders.build_encoder(name, k, level)
            signals[k] = encoders.signal_ratio(law)
        for name, size in words.items():
            # Of W even words, n codes tell two labels of one word by n signal / W^2; of
            # a public word by (n / W) signal of fewer classes, without it by n signal.
            gain = size * signals[total // size] / signals[total]
            row = {"epsilon": level, "column": name, "public": gain}
            rows.append(row | {"left out": size * gain})
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    typer.echo(f"One code is worth so many that hide {total} classes, if a column is")
    typer.echo("public or left out (words being equally frequent):\n")
    numbers = ((*row.values(),) for row in rows)
    cells = [[f"{x:g}", f"{name}", f"{a:.3g}", f"{b:.3g}"] for x, name, a, b in numbers]
    typer.echo("\n".join(align_columns([[*rows[0]], *cells])))


def _parse_column(text: str) -> tuple[str, int]:
    name, _, size = text.partition("=")
    if not (name and size.isdecimal() and int(size) > 1):
        raise UserError(f"--private is {text!r}; write NAME=words, such as tier=3.")
    return name, int(size)
