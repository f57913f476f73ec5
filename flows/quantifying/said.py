"""What `curvote utility` says: one JSON document, or a table and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import typer
from rich.table import Table

from curvote.flows.output.tables import console
from curvote.flows.quantifying.asked import Found, Line
from curvote.utility.deployments.deployment import OUTPUT, Deployment
from curvote.utility.rows import Row

# The deployments of a total that the table shows; --json prints every one.
SHOWN: Final = 3
RANK: Final = {"exact": 0, "bracket": 1, "draws": 2}
HEADS: Final = {
    "agreement": "agreement",
    "worst": "worst",
    "under_target": "under target",
    "bound": "bound",
    "claimed": "claimed",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
}


def document(found: Found) -> dict[str, Any]:
    """Return everything as plain JSON values."""
    described = found.ready.described
    last = list(found.advice.values())[-1]
    return {
        "model": {
            "kind": described.kind,
            "classes": list(described.classes),
            "features": list(described.features),
            "evidence": evidence(found),
        },
        "records": found.ready.setting.n,
        "floors": [row.as_json() for row in found.rows(free=True)],
        "rows": [row.as_json() for row in found.rows(free=False)],
        "recommendation": last.as_json(),
    }


def evidence(found: Found) -> str:
    """Return the weakest evidence among rows whose noise stands before the model."""
    kinds = [row.evidence for row in found.rows(free=False) if row.mechanism != OUTPUT]
    return max(kinds or ["exact"], key=RANK.__getitem__)


def show(found: Found) -> None:
    """Print the table, and below it the recommendation in words."""
    lines = list(_chosen(found.lines))
    rows = [row for line in lines for row in line.rows]
    told = [name for name in HEADS if any(getattr(r, name) is not None for r in rows)]
    table = Table(box=None, pad_edge=False)
    for head in ("epsilon", "what is sent", *map(HEADS.__getitem__, told), "evidence"):
        right = head not in {"what is sent", "evidence"}
        table.add_column(head, justify="right" if right else "left")
    for line in lines:
        words = _words(line.deployment, found.ready.setting.names)
        for row in line.rows:
            table.add_row(*_cells(words, row, told))
    console().print(table)
    for sentence in sentences(found):
        typer.echo(sentence)


def _chosen(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the floors, then of each total the best ones, an equal split, `output`."""
    yield from (line for line in lines if line.free)
    sent = [line for line in lines if not line.free]
    for total in sorted({line.row.epsilon for line in sent}):
        own = [line for line in sent if line.row.epsilon == total]
        best = sorted(own, key=lambda line: -line.row.agreement)
        noised = [line for line in best if line.row.mechanism != OUTPUT]
        equal = [line for line in noised if equal_split(line.row)]
        shown = [*noised[:SHOWN], *equal[:1]]
        yield from (line for line in noised if line in shown)
        yield from (line for line in own if line.row.mechanism == OUTPUT)


def equal_split(row: Row) -> bool:
    """Say whether every feature has its own noise of the same epsilon, read raw."""
    shares = set((row.split or {}).values())
    return row.read == "raw" and len(shares) == 1


def _cells(words: str, row: Row, told: Sequence[str]) -> Iterator[str]:
    yield f"{row.epsilon:g}"
    yield words if row.group is None else f"  of them {row.group}"
    for name in told:
        value = getattr(row, name)
        yield "" if value is None else _share(row, name, value)
    yield row.evidence


def _words(deployment: Deployment, names: tuple[str, ...]) -> str:
    words = deployment.words(names)
    client = deployment.mechanism == OUTPUT
    return f"{words} (clients run the model)" if client else words


def _share(row: Row, name: str, value: float) -> str:
    if name == "agreement" and row.upper - row.lower > 5e-4:
        return f"{value:.3f} [{row.lower:.3f}, {row.upper:.3f}]"
    return f"{value:.3f}"


def sentences(found: Found) -> Iterator[str]:
    """Yield what is recommended, a line for each total where no target is given."""
    yield ""
    for total, advice in found.advice.items():
        at = "" if total is None else f"total epsilon {total:g}: "
        yield f"{at}{advice.reason}"
    yield from _small_print(found)


def _small_print(found: Found) -> Iterator[str]:
    if found.ready.sample:
        total = found.ready.total
        yield (
            f"{found.ready.setting.n} of {total:,} records, drawn at random: intervals"
            " are of all of them and more like them (--rows N takes more)."
        )
    if found.known.why and evidence(found) != "exact":
        yield f"why {evidence(found)}: {found.known.why}"
    yield (
        "agreement is with the answer without noise, not with the truth. The figures"
        " are a population's: nobody should choose epsilon, or whether to take part, by"
        " that of their own record."
    )
