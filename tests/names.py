"""The lint rule of names: no bare participle or pronoun, no riddle as a first line.

Run as ``python -m tests.names``: prints what breaks the rule and exits with 1.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("curvote", "flows", "tasks")
# A participle or a pronoun alone names nothing: the noun that it stands for does.
BARE = frozenset(
    [
        "another",
        "asked",
        "begun",
        "both",
        "each",
        "found",
        "given",
        "gone",
        "held",
        "here",
        "judged",
        "kept",
        "known",
        "left",
        "made",
        "mine",
        "one",
        "others",
        "own",
        "said",
        "seen",
        "sent",
        "shown",
        "standing",
        "stated",
        "such",
        "taken",
        "told",
        "unasked",
        "whole",
        "drawn",
    ]
)
RIDDLE = re.compile(r"(What|Whether|Who|How|Where|Which)\b")
# Names that somebody outside uses, each with the reason.
EXCEPTIONS = {
    "curvote/base/privacy.py:each": "public method of Budget",
    "curvote/curves/encoding.py:judged": "public method of Encoding",
    "curvote/estimators/transfer.py:sent_": "public attribute of an estimator",
    "curvote/pipeline/run/run_object.py:each": "public parameter of Run.scores",
    "curvote/systems/transfer/method/release.py:kept": "public attribute of Release",
    "flows/machine.py:found": "key of `curvote doctor --json`",
    # Public methods of curvote.audit.Subject, and what its kinds have of them.
    "curvote/checks/subject.py:said": "public",
    "curvote/checks/subject.py:shown": "public",
    "curvote/checks/subject.py:given": "public",
    "curvote/checks/mechanism_subject.py:shown": "public",
    "curvote/checks/mechanism_subject.py:given": "public",
    "curvote/audit/message_subject.py:said": "public",
    "curvote/audit/message_subject.py:shown": "public",
    "curvote/systems/transfer/audit/subject.py:shown": "public",
}

Bound = tuple[int, str, str]


def sources() -> list[Path]:
    """Return every file of the product."""
    return [file for name in PACKAGES for file in sorted((ROOT / name).rglob("*.py"))]


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each function, class, parameter and variable."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(
            node.ctx, ast.Store
        ):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def problems(file: Path) -> Iterator[str]:
    """Yield a line for each name of a file that the rule refuses."""
    place = file.relative_to(ROOT).as_posix()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    if file.stem.strip("_") in BARE:
        yield f"{place}: the module's name is a bare word"
    if RIDDLE.match(ast.get_docstring(tree) or ""):
        yield f"{place}:1: the module's first line does not name it"
    for line, name in bound_names(tree):
        if name.strip("_").lower() in BARE and f"{place}:{name}" not in EXCEPTIONS:
            yield f"{place}:{line}: {name} is a bare word; name the thing"


def main() -> None:
    """Print every problem of the product; exit with 1 where there is any."""
    lines = [line for file in sources() for line in problems(file)]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
