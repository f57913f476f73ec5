"""The scores of shipped pipelines: no change of the code that means none moves them.

golden_scores.json holds digests. Where a number is meant to change, the digest that the
failing test shows takes the place of the old one, and the commit says why.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import final_views, mean_scores
from curvote.pipeline.store.records import RunRecord
from tests import plain

REPOSITORY = Path(__file__).parents[2]
GOLDEN = json.loads(Path(__file__).with_name("golden_scores.json").read_text())
NAMES = ("demo", "servers", "arrivals", "compare")
# Keys of a row of `scores --json` when the digests were made; rows may gain others.
KEYS = (
    *("pipeline", "protocol", "epsilon", "learner", "method", "misclassification"),
    *("se", "replicates", "none_passed", "arrival", "group", "setting"),
)
# Columns of the table `ensemble`, likewise.
COLUMNS = (
    *("replicate", "learner", "utility", "standard_error", "reversed"),
    *("weight", "none_passed", "weight_ma", "none_passed_ma"),
)

Row = Mapping[str, Any]


def rounded(value: Any, digits: int) -> Any:
    """Return a float at so many significant digits; the last bits are the machine's."""
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def digest(rows: Iterable[Row], keys: Iterable[str], digits: int) -> dict[str, Any]:
    """Return how many rows there are, and their SHA-256: in order, ``keys`` only."""
    known = [{k: rounded(row[k], digits) for k in keys if k in row} for row in rows]
    lines = sorted(json.dumps(row, sort_keys=True) for row in known)
    content = "\n".join(lines).encode()
    return {"rows": len(lines), "sha256": hashlib.sha256(content).hexdigest()}


def of_scores(rows: Iterable[Row]) -> dict[str, Any]:
    """Return the digest of the rows that tell an error rate."""
    metric = "misclassification"
    told = (row for row in rows if row.get("metric", metric) == metric)
    return digest(told, KEYS, digits=12)


def of_ensembles(project: Project, record: RunRecord) -> dict[str, Any]:
    """Return the digest of the utilities and weights of all cells, where any votes."""
    rows: list[Row] = []
    for view in final_views(project, record):
        if view.holds("aggregate", "ensemble"):
            context = {"cell": [view.cell["epsilon"], view.cell["learner"]]}
            made = view.read("aggregate", "ensemble").to_dict("records")
            rows += [row | context | _numbered(row) for row in made]
    return digest(rows, ("cell", *COLUMNS), digits=9)  # a weight is a small difference


def _numbered(row: Row) -> dict[str, int]:
    """Return the repetition as one number: there are five servers, where any."""
    return (
        {"replicate": row["replicate"] * 5 + row["server"]} if "server" in row else {}
    )


@pytest.fixture
def shipped(tmp_path: Path) -> Project:
    """Return a project with the shipped pipelines."""
    shutil.copy(REPOSITORY / "pipelines.yaml", tmp_path)
    (tmp_path / "data").mkdir()
    shutil.copy(REPOSITORY / "data" / "sources.toml", tmp_path / "data")
    return Project(tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_two_replicates_keep_their_scores(name: str, shipped: Project) -> None:
    """What `curvote run NAME --set replicates=2` finds; arrivals make no ensembles."""
    record = plain.run(shipped, name, "replicates=2")
    scores = of_scores(mean_scores(shipped, record))
    assert scores == GOLDEN["short"][name]
    if name in GOLDEN["ensembles"]:
        assert of_ensembles(shipped, record) == GOLDEN["ensembles"][name]


@pytest.mark.faults  # all replicates that are shipped: most of a minute
@pytest.mark.parametrize("name", NAMES)
def test_every_replicate_keeps_its_scores(name: str, shipped: Project) -> None:
    """The digests were made of what `curvote run` and `scores --json` print."""
    record = plain.run(shipped, name, block=20)
    assert of_scores(mean_scores(shipped, record)) == GOLDEN["full"][name]


def test_a_digest_sees_numbers_and_nothing_that_is_new() -> None:
    """Order, further keys, other metrics and the last bit are free; the rest is not."""
    row = {"epsilon": 1.0, "method": "mrma", "misclassification": 0.1, "se": None}
    other = row | {"method": "weak"}
    new = {"metric": "misclassification", "value": 0.1}
    last_bit = {"misclassification": 0.1 + 2e-17}
    rmse = row | {"metric": "rmse", "value": 3.0}
    golden = of_scores([row, other])
    assert of_scores([rmse, other | new, row | new | last_bit]) == golden
    assert of_scores([row, other | {"misclassification": 0.10000000001}]) != golden
    assert of_scores([row, other | {"se": 0.0}]) != golden
    assert of_scores([row, row]) != golden
