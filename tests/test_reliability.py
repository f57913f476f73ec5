"""docs/reliability.md lists every fault, and each row names tests that are there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.house import ROOT

PAGE = ROOT / "docs" / "reliability.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
# What was promised to be tried, in the words of the page's rows.
PROMISED = {
    "Processes": (
        *("kill -9 of a run", "kill -9 of a releasing run"),
        *("kill -9 of a worker, twice", "a worker over its memory limit"),
        *("kill -9 of a scheduled flow", "kill -9 of serve", "kill -9 of its server"),
        "kill -9 of the intake between commit and answer",
        "kill -9 of one of two intake services",
        *("SIGTERM to a run", "SIGTERM to serve", "SIGTERM to the intake"),
        *("two runs of one pipeline at once", "two serves of one project"),
    ),
    "Disks": (
        *("full while a block is written", "full while a manifest is written"),
        *("full while the ledger is written", "full while the intake is written"),
        "full while Prefect's database is written",
        "full while MLflow's database is written",
        *("read-only", "artifacts and state on different disks"),
        "an object store that answers 500 or 503",
        "an object store that does not answer",
    ),
    "Clocks": (
        "3 hours back or a year forward between runs",
        *("while serve waits", "between reservation and confirmation"),
    ),
    "Files": (
        *("an altered table", "a torn manifest", "destroyed records of runs"),
        "Prefect's database destroyed at the start",
        "Prefect's database destroyed at the end",
        *("Prefect's database absent", "Prefect's database of a newer version"),
        *("MLflow's database destroyed", "MLflow's database absent"),
        "MLflow's database of a newer version",
        *("the ledger damaged", "the ledger missing", "the ledger older"),
        "the ledger older together with the store",
        *("the ledger locked for a minute", "the intake damaged"),
        *("the intake missing", "the intake older"),
        *("the intake locked for a minute", "a raw file that changes while it is read"),
    ),
    "Networks": (
        *("a port that is taken", "Prefect unreachable at the start"),
        *("Prefect unreachable half way", "MLflow's database unreachable"),
        *("the intake's database unreachable", "slow, cut and repeated uploads"),
        *("reordered uploads", "oversized uploads"),
        "one envelope at two services at once",
    ),
}


def rows(section: str) -> list[list[str]]:
    """Return the cells of each row of a section's table."""
    text = PAGE.read_text(encoding="utf-8")
    own = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in own.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@cache
def names_in(path: Path) -> set[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("section", PROMISED)
def test_every_promised_fault_has_its_row(section: str) -> None:
    """And each row says what is lost, what is read, and when it goes on."""
    found = rows(section)
    promised = set(PROMISED[section])
    assert promised <= {cells[0] for cells in found}
    assert all(len(cells) == 5 and all(cells) for cells in found)


@pytest.mark.parametrize("section", PROMISED)
def test_every_row_names_tests_that_are_there(section: str) -> None:
    """By file and name; no row without one."""
    for cells in rows(section):
        named = NAMED.findall(cells[4])
        assert named, f"{cells[0]}: no test"
        assert not NAMED.sub("", cells[4]).strip(" ,"), f"{cells[0]}: {cells[4]}"
        for file, test in named:
            assert (ROOT / file).is_file(), f"{cells[0]}: no file {file}"
            assert test in names_in(ROOT / file), f"{cells[0]}: no {file}::{test}"
