"""A table that nobody published, with counts that no other number is likely to be."""

import hashlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from curvote.pipeline.config.project import Project
from tests import plain

ROWS, ILL, LACKING, AGAIN = 34_567, 16_829, 12_347, 11_003
TABLE = {
    "name": "table",
    "path": "people.csv",
    "id": "person",
    "label": "outcome",
    "positive": "ill",
    "features": ["age", "dose"],
    "bounds": {"age": [0, 100], "dose": [-1, 3]},
}
STUDY = plain.TINY | {
    "source": TABLE,
    "clients": {"train": 60, "vote": 80, "test": 40},
    "project": {"basis": "identity", "rescale": "min_max", "bounds": "public"},
    "epsilon": [8],
    "learners": ["centroid"],
    "replicates": 2,
}
REAL = STUDY | {
    "mode": "production",
    "clients": {"train": 60, "vote": 80},
    "ledger": {"per_client": {"epsilon": 8}, "population": "town"},
}


def write(root: Path) -> Project:
    """Write a project with the table, a study on it and a release of its people."""
    text = _people().to_csv(index=False)
    project = plain.write(root, study=STUDY, real=REAL)
    (root / TABLE["path"]).write_text(text)
    return project


def _people() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    ill = rng.permutation(np.arange(ROWS) < ILL)
    age = (10 + 60 * rng.random(ROWS)).round(9)
    dose = rng.random(ROWS).round(9)
    dose[rng.permutation(ROWS)[:LACKING]] = np.nan
    people = pd.DataFrame({"age": age, "dose": dose, "ill": ill})
    people.loc[ROWS - AGAIN :] = people.loc[: AGAIN - 1].to_numpy()
    outcome = np.where(people.pop("ill").astype(bool), "ill", "well")
    return people.assign(person=[f"p{i}" for i in range(ROWS)], outcome=outcome)


def digests_of_guesses(project: Project) -> dict[str, str]:
    """Return the SHA-256 of the file for each guess of its last row, one of them right.

    All other rows are known to whoever guesses.
    """
    *known, last = (project.root / TABLE["path"]).read_text().splitlines(keepends=True)
    guesses = {"right": last, "wrong": last.replace(",", ",1", 1)}
    return {
        name: hashlib.sha256("".join([*known, guess]).encode()).hexdigest()
        for name, guess in guesses.items()
    }


def files_elsewhere(project: Project) -> Iterator[Path]:
    """Yield every file of data/ outside data/clients, the ledger and the key."""
    for path in sorted((project.root / "data").rglob("*")):
        ours = path.name.startswith(project.ledger.name) or path == project.digest_key
        if path.is_file() and not path.is_relative_to(project.clients) and not ours:
            yield path


def text_of(path: Path) -> str:
    """Return what a file says: bytes as they are, and the content of tables."""
    found = [path.read_bytes().decode("latin-1")]
    if path.suffix == ".parquet":
        found.append(pq.read_table(path).to_pandas().to_csv())
    if path.suffix == ".db":
        with closing(sqlite3.connect(path)) as db:
            found += db.iterdump()
    return "\n".join(found)


def says(text: str, count: int) -> bool:
    """Say whether a text holds a count as a number of its own, no part of a UUID."""
    alone = rf"(?<![\w.])(?<![0-9a-f]{{4}}-){count}(?![\w.])"
    return bool(re.search(rf"{alone}|{count:,}", text))


def open_to_others(path: Path, below: Path) -> bool:
    """Say whether another user of the machine can read a file below a folder."""
    way = [f for f in path.parents if f.is_relative_to(below) and f != below]
    entered = all(folder.stat().st_mode & 0o001 for folder in way)
    return entered and bool(path.stat().st_mode & 0o004)
