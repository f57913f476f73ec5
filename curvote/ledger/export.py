"""Export of a ledger as a table."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from curvote.base.errors import UserError
from curvote.ledger.book import Ledger

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
        values = {
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
        columns = [
            clients
            if field.name == "client"
            else pa.repeat(pa.scalar(values[field.name], field.type), len(clients))
            for field in SCHEMA
        ]
        yield pa.table(columns, schema=SCHEMA)


def _write_csv(stream: BinaryIO, tables: Iterator[pa.Table]) -> None:
    with csv.CSVWriter(stream, SCHEMA) as writer:
        for table in tables:
            writer.write_table(table)


def _write_parquet(stream: BinaryIO, tables: Iterator[pa.Table]) -> None:
    with pq.ParquetWriter(stream, SCHEMA, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)


def _write_json(stream: BinaryIO, tables: Iterator[pa.Table]) -> None:
    before = "["
    for batch in (b for t in tables for b in t.to_batches(max_chunksize=10_000)):
        for row in batch.to_pylist():
            stream.write(f"{before}\n{json.dumps(row)}".encode())
            before = ","
    stream.write(b"[]\n" if before == "[" else b"\n]\n")


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
