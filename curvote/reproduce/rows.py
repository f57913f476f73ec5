"""The rows of a reproduction, as text and as files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]


def having(rows: Iterable[Row], **values: Any) -> list[Row]:
    """Return the rows that hold these values, in their order."""
    return [row for row in rows if all(row[n] == v for n, v in values.items())]


def levels(rows: Iterable[Row]) -> list[float | None]:
    """Return the epsilons, rising; None (no privacy) is last."""
    found = {row["epsilon"] for row in rows}
    return [*sorted(found - {None}), *(found & {None})]


def with_error(row: Row) -> str:
    """Return "11.92 ± 0.10": the value and one standard error, where it is known."""
    error = "" if row["se"] is None else f" ± {row['se']:.2f}"
    return f"{row['curvote']:.2f}{error}"


def to_json(rows: Sequence[Row]) -> str:
    """Return the rows as one JSON document, without NaN."""
    return json.dumps(list(rows), indent=1, allow_nan=False)


def to_csv(rows: Sequence[Row], columns: Sequence[str]) -> bytes:
    """Return the rows as a CSV file with a header."""
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue().encode()
