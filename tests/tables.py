"""A small invented table: its schema, its limits, and files made of random rows."""

import numpy as np

from curvote.data.columns import Feature, category_feature
from curvote.data.raw_files import Source
from curvote.data.reader import TableSchema

HEADER = "Row,Weight,Town,Visits,Ill"
SCHEMA = TableSchema(
    features=(
        Feature("Weight", "kg", 0, 200, "scales", centre=70, missing=(0.0,)),
        category_feature("Town", ("Rome", "Bonn", "Oslo"), "the map"),
        Feature("Visits", "times", 0, 10, "a year", missing=(-9.0,), integral=True),
    ),
    label="Ill",
    labels={"no": 0, "yes": 1, "very": 1},
    classes=("well", "ill"),
    ignored=("Row",),
    marks=("", "?"),
    possible={"Weight": (0.0, 600.0), "Visits": (0.0, 400.0)},
)


def rows(n: int = 60, seed: int = 1, *, gaps: bool = True) -> list[list[str]]:
    """Return ``n`` rows of valid cells, many of them equal but for the row's number."""
    rng = np.random.default_rng(seed)
    marks = ["", "?"] if gaps else []
    columns = [
        rng.choice(["60", "61.5", "0", "+7e1", *marks], n),
        rng.choice(["Rome", "Bonn", "Oslo", *marks[:1]], n),
        rng.choice(["0", "3", "-9", "12.0", *marks[1:]], n),
        rng.choice(["no", "yes", "very"], n),
    ]
    return [
        [str(i), *map(str, row)] for i, row in enumerate(zip(*columns, strict=True))
    ]


def text(cells: list[list[str]], header: str = HEADER, end: str = "\n") -> bytes:
    """Return the file of these cells, each line with its end."""
    return "".join(line + end for line in [header, *map(",".join, cells)]).encode()


def source(name: str, n: int, **counts: int) -> Source:
    """Return what would be published about a file with so many rows and labels."""
    words = dict.fromkeys(("title", "file", "url", "licence", "citation"), "invented")
    return Source(name=name, rows=n, counts=counts, variants=(), dataset=name, **words)
