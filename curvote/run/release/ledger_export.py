"""Export of a ledger as a table with a row for each client and release."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from curvote.client.ledger import Entry, Ledger
from curvote.errors import UserError

SCHEMA: Final = pa.schema(
    [
        ("population", pa.string()),
        ("client", pa.string()),
        ("release", pa.string()),
        ("stage", pa.string()),
        ("task", pa.string()),
        ("number", pa.int64()),
        ("state", pa.string()),
        ("epsilon", pa.float64()),
        ("delta", pa.float64()),
        ("time", pa.string()),
    ]
)


def export_ledger(ledger: Ledger | None, kind: str, out: Path | None) -> None:
    """Write all releases of a ledger in the format ``kind`` (see `WRITERS`).

    ``out`` is written whole or not at all; None is standard output. No ledger gives no
    rows. ``time`` is when the release was reserved, from when on it counts.
    """
    with _open_target(out) as stream:
        WRITERS[kind](stream, _release_tables(ledger))


def _release_tables(ledger: Ledger | None) -> Iterator[pa.Table]:
    """Yield a table for each release, with a row for each client."""
    if ledger is None:
        return
    for entry in ledger.entries():
        clients = pa.array(ledger.members(entry.release), type=pa.string())
        values = _entry_values(entry)
        columns = [
            clients
            if field.name == "client"
            else pa.repeat(pa.scalar(values[field.name], field.type), len(clients))
            for field in SCHEMA
        ]
        yield pa.table(columns, schema=SCHEMA)


def _entry_values(entry: Entry) -> dict[str, Any]:
    return {
        "population": entry.population,
        "release": entry.release,
        "stage": entry.facts.get("stage"),
        "task": entry.facts.get("task"),
        "number": entry.facts.get("number"),
        "state": entry.state,
        "epsilon": entry.budget.epsilon,
        "delta": entry.budget.delta,
        "time": entry.reserved,
    }


def _write_csv(stream: BinaryIO, tables: Iterator[pa.Table]) -> None:
    with csv.CSVWriter(stream, SCHEMA) as writer:
        for table in tables:
            writer.write_table(table)


def _write_parquet(stream: BinaryIO, tables: Iterator[pa.Table]) -> None:
    with pq.ParquetWriter(stream, SCHEMA, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)


def _write_json(stream: BinaryIO, tables: Iterator[pa.Table]) -> None:
    rows = (row for table in tables for row in _json_rows(table))
    before = "["
    for row in rows:
        stream.write(f"{before}\n{json.dumps(row)}".encode())
        before = ","
    stream.write(b"[]\n" if before == "[" else b"\n]\n")


def _json_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=10_000):
        yield from batch.to_pylist()


WRITERS: Final[dict[str, Callable[[BinaryIO, Iterator[pa.Table]], None]]] = {
    "csv": _write_csv,
    "parquet": _write_parquet,
    "json": _write_json,
}


@contextmanager
def _open_target(out: Path | None) -> Iterator[BinaryIO]:
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    temporary = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            yield stream
        temporary.replace(out)
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)
