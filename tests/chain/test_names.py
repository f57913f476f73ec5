"""What is generic names no system: `run`, `reporting`, `flows`, `tasks` read values.

A literal is any text but a docstring: a name by itself, a part of a dotted path or of a
format. In a sentence only names count that are no English words.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from curvote.chain.lookup import all_systems
from curvote.chain.measure import SCORES
from curvote.chain.registry import SYSTEMS

ROOT = Path(__file__).parents[2]
# The skeleton of the pages is all but what single systems show there; a verb about
# finished models has words of its own.
OWN: tuple[Path, ...] = ()
GENERIC = (
    "curvote/pipeline/**/*.py",
    "curvote/report/**/*.py",
    "flows/**/*.py",
    "tasks/**/*.py",
    "curvote/base/entropy.py",
    "curvote/wire/task.py",
)
# The user's words for the steps of a chain, whatever the system.
CHAIN = {"ingest", "project", "privatize", "train", "evaluate", "aggregate", "report"}
# Names of systems that are words of English, too: a sentence may hold them.
ENGLISH = re.compile(r"[a-z]+")
NO_ENGLISH = {"mr", "ma", "mrma"}

# Where a name means something else: {file: {name: what it means there}}.
ALLOWED: dict[str, dict[str, str]] = {
    "curvote/pipeline/config/schema.py": {"tree": "a tree of invitations"},
    "curvote/pipeline/config/settings.py": {"tree": "a tree of invitations"},
    "curvote/pipeline/release/publication.py": {"tree": "a tree of invitations"},
    "curvote/pipeline/config/file.py": {
        "clients": "the section that says who takes part"
    },
    "curvote/cli/commands/project.py": {"clients": "a line of a file's card"},
    "curvote/pipeline/config/project.py": {
        "clients": "the folder of what only the clients' side may read",
        "reports": "the folder of pages",
    },
    "curvote/pipeline/run/execution.py": {"frozen": "a key of every manifest"},
    "curvote/pipeline/store/garbage.py": {"frozen": "a key of every manifest"},
    "curvote/pipeline/run/engines.py": {
        "target": "a part of the name of a setting of dask",
        "auto": "dask's own word for a share of the memory",
    },
    "curvote/pipeline/store/parquet.py": {"counts": "how many rows a repetition has"},
    "curvote/pipeline/store/tables.py": {"counts": "how many rows a repetition has"},
    "curvote/cli/doctor.py": {"frozen": "a key of every manifest"},
    "curvote/pipeline/release/production.py": {"clients": "who stands in the ledger"},
    "curvote/pipeline/plan/step.py": {"clients": "the section that says who is asked"},
    "curvote/cli/app.py": {"utility": "a command, and the extra it goes with"},
    "curvote/cli/tables.py": {
        "clients": "a line of a data set's card",
        "counts": "what a data set tells of its missing values",
    },
    "flows/tracking/datasets.py": {
        "features": "what data sets tell of their columns",
        "counts": "what they tell of their classes",
    },
    "flows/tracking/flavor.py": {"features": "what data sets tell of their columns"},
    "flows/tracking/cells.py": {
        "clients": "the section that says who takes part",
        "judge": "a role of clients",
    },
    "curvote/wire/task.py": {
        "candidates": "a field of every task",
        "numbers": "what a form holds, in a message",
    },
    "curvote/cli/commands/ledger.py": {
        "clients": "a column of the ledger's tables",
        "releases": "what a ledger lists",
    },
    "curvote/report/card.py": {
        "features": "what data sets tell of their columns",
        "counts": "what they tell of their classes and missing values",
    },
    "curvote/report/sentences.py": {"features": "the same"},
    "curvote/report/certificate/document.py": {
        "mean": "epsilon of a person in the mean",
        "utility": "a field of NIST SP 800-226",
        "clients": "the section that says who takes part",
    },
    "flows/artifacts.py": {"answers": "how many people a figure rests on"},
    "flows/serving/metrics.py": {"answers": "the same"},
    "flows/tracking/runs.py": {"bayes": "the best value possible, beside a metric"},
    "curvote/pipeline/release/evidence.py": {"releases": "the name of the copy"},
    "curvote/pipeline/release/restore.py": {
        "clients": "how many a line of the copy counts"
    },
}


def _files() -> list[Path]:
    found = {path for pattern in GENERIC for path in ROOT.glob(pattern)}
    return sorted(path for path in found if not any(map(path.is_relative_to, OWN)))


def _names() -> set[str]:
    """Return the names of systems, methods, metrics, tables and their own stages."""
    every = all_systems()
    found = {one.name for one in every}
    found |= {each.name for one in every for each in (*one.methods, *one.metrics)}
    found |= {table.name for one in every for table in one.tables}
    found |= {stage.name for one in every for stage in one.all_stages}
    return found - CHAIN - {SCORES.name}


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of every literal that is no docstring."""
    told = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and id(node) not in told:
            yield node.lineno, value


def _named(text: str, names: set[str]) -> set[str]:
    found = set(re.findall(r"[\w-]+", text)) & names
    if len(text.split()) > 1:
        return {n for n in found if not ENGLISH.fullmatch(n) or n in NO_ENGLISH}
    return found


def _imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    packages = {place: name for name, place in reversed([*SYSTEMS.items()])}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for place, name in packages.items():
                if f"{node.module}.".startswith(f"{place}."):
                    yield node.lineno, name


def literals(path: Path, names: set[str]) -> Iterator[str]:
    """Yield ``file:line name`` of each name of a system that a file holds."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    file = path.relative_to(ROOT).as_posix()
    found = [(line, n) for line, text in _texts(tree) for n in _named(text, names)]
    found += _imported(tree)
    for line, name in sorted(set(found)):
        if name not in ALLOWED.get(file, {}):
            yield f"{file}:{line} {name}"


def test_what_is_generic_names_no_system() -> None:
    """No system, method, metric, table or stage of one stands in generic code."""
    names = _names()
    assert {"mrma", "best_single", "misclassification", "weak", "whiten"} <= names
    assert [line for path in _files() for line in literals(path, names)] == []


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ('column = "weak"', "weak"),
        ('read(view, f"{a}.best_single")', "best_single"),
        ('x = "this is mrma by another name"', "mrma"),
        ('value = dotted(config, "votes.size")', "votes"),
        ("from curvote.systems.direct.messages import ARMS", "direct"),
    ],
)
def test_a_name_in_generic_code_is_found(code: str, name: str, tmp_path: Path) -> None:
    """By itself, in a path, in a format, in a sentence, in an import."""
    tree = ast.parse(code)
    found = [n for _, text in _texts(tree) for n in _named(text, _names())]
    assert name in {*found, *(n for _, n in _imported(tree))}


def test_whatever_is_allowed_is_still_there() -> None:
    """A line of the list above that nothing needs any more is to go."""
    names, stale = _names(), []
    for file, allowed in ALLOWED.items():
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        context = {name for _, text in _texts(tree) for name in _named(text, names)}
        stale += [f"{file}: {name}" for name in allowed if name not in context]
    assert stale == []
