"""What can happen to a durable file between two openings, and what is then said."""

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

Damage = Callable[[Path], object]


def execute(statement: str) -> Damage:
    """Return what changes a file by hand, its tables too."""

    def change(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA writable_schema = ON")
            db.execute(statement)

    return change


def _other_application(path: Path) -> None:
    path.unlink()
    execute("CREATE TABLE notes (text)")(path)


def _drop_a_table(path: Path) -> None:
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        name = db.execute(query).fetchone()[0]
        db.execute(f"DROP TABLE {name}")


def _bad_page(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.seek(-4096, os.SEEK_END)
        stream.write(b"\xff" * 100)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: list[tuple[Damage, str]] = [
    (lambda path: os.truncate(path, 0), "empty, cut off or another application's"),
    (lambda path: os.truncate(path, 50), "cut off"),
    (lambda path: os.truncate(path, 5000), "damaged"),
    (lambda path: os.truncate(path, path.stat().st_size - 1), "damaged"),
    (lambda path: path.write_bytes(random.Random(1).randbytes(9000)), "damaged"),
    (lambda path: path.write_text("client,epsilon\n" * 99), "damaged"),
    (_bad_page, "damaged"),
    (_other_application, "another application's"),
    (execute("PRAGMA application_id = 7"), "another application's"),
    (execute("PRAGMA user_version = 99"), "update curvote"),
    (execute("PRAGMA user_version = 0"), "damaged"),
    (_drop_a_table, "damaged"),
    (execute("CREATE TABLE notes (text)"), "damaged"),
    (_folder, "cannot be opened"),
    (lambda path: path.rename(f"{path}-wal"), r"missing but \w+\.sqlite-wal is there"),
    (lambda path: path.rename(f"{path}-journal"), "sqlite-journal is there"),
]


def content(path: Path) -> bytes | bool:
    """Return the bytes of a file, else whether anything is at its name."""
    return path.read_bytes() if path.is_file() else path.exists()
