"""Small fake tables of NHANES 2003-2006: the published columns, invented people."""

from pathlib import Path
from typing import Any

from curvote.data.public.nhanes_2003 import BINS
from tests.phoneme_file import put, sha256

HEADER = [
    *("seqn", "sddsrvyr", "age", "gender", "bmi", "lbxtc", "lbdhdd", "sys"),
    *("tac", "tlac", "mvpa", "wt", "st", *BINS),
]
FILE = "activity.csv"


def person(seqn: int, gender: str, age: float, hdl: float | str, **other: Any) -> str:
    """Return one line."""
    bins = {name: 100 * i + seqn % 100 for i, name in enumerate(BINS)}
    named = {"seqn": seqn, "gender": gender, "age": age, "lbdhdd": hdl}
    cells = dict.fromkeys(HEADER, "1") | bins | named | other
    return ",".join(str(cells[name]) for name in HEADER)


def text(people: list[str]) -> str:
    """Return a table of such lines."""
    return "\n".join([",".join(HEADER), *people]) + "\n"


def write_source(root: Path, n: int = 80) -> None:
    """Give the project at ``root`` a table of ``n`` women whose HDL falls with age."""
    years = [30 + i % 50 for i in range(n)]
    content = text([person(i, "Female", y, 110 - y) for i, y in enumerate(years, 1)])
    (root / "data" / "raw").mkdir(parents=True)
    put(root, content, FILE)
    (root / "data" / "sources.toml").write_text(
        f"""
        [nhanes-activity-2003]
        title = "Fake activity"
        file = "{FILE}"
        url = "http://127.0.0.1:9/x"
        licence = "none"
        citation = "none"
        rows = {n}
        counts = {{}}
        [[nhanes-activity-2003.variants]]
        sha256 = "{sha256(content)}"
        origin = "invented"
        """
    )
