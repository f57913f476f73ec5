"""The size of the house: lines, code, imports, files and functions.

Run as ``python -m benchmarks.size``; ``--json`` prints the same as JSON.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
PARTS = {"product": ("curvote", "flows", "tasks"), "tests": ("tests",)}
SMALL = 40


def spans(tree: ast.AST, *kinds: type[ast.AST]) -> list[int]:
    """Return how many lines each node of these kinds has."""
    return [
        node.end_lineno - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]


def size(folders: tuple[str, ...]) -> dict[str, Any]:
    """Return the counts of all Python files below some folders, links not followed."""
    files = [file for name in folders for file in sorted((ROOT / name).rglob("*.py"))]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    trees = [ast.parse(text) for text in texts.values()]
    lines = {file: len(text.splitlines()) for file, text in texts.items()}
    rooms = [n for file, n in lines.items() if file.name != "__init__.py"]
    imports = sum(sum(spans(tree, ast.Import, ast.ImportFrom)) for tree in trees)
    functions = [
        n for tree in trees for n in spans(tree, ast.FunctionDef, ast.AsyncFunctionDef)
    ]
    total = sum(lines.values())
    return {
        "lines": total,
        "code": sum(
            bool(line.strip()) and not line.lstrip().startswith("#")
            for text in texts.values()
            for line in text.splitlines()
        ),
        "files": len(files),
        "files under 40 lines": sum(n < SMALL for n in rooms),
        "percent of files under 40 lines": round(
            100 * sum(n < SMALL for n in rooms) / len(files), 1
        ),
        "imports": imports,
        "percent of lines that are imports": round(100 * imports / total, 1),
        "functions": len(functions),
        "median lines of a function": median(functions),
    }


def main() -> None:
    """Print the counts of product and tests."""
    counts = {part: size(folders) for part, folders in PARTS.items()}
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps(counts) + "\n")
        return
    for name in counts["product"]:
        row = (f"{counts[part][name]:>12,}" for part in PARTS)
        sys.stdout.write(f"{name:<36}{''.join(row)}\n")


if __name__ == "__main__":
    main()
