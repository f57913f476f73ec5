"""An interpreter that finds no package but those that the base of curvote brings."""

import os
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_RUN = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
{then}
"""
_CURVOTE = "from curvote.cli.app import main; main()"


@cache
def base() -> frozenset[str]:
    """Return the distributions of curvote's base: what it requires without an extra."""
    found, waiting = set[str](), ["curvote"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for line in _requires(name):
            wanted = Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                waiting.append(canonicalize_name(wanted.name))
    return frozenset(found)


def _requires(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:
        return []


@cache
def absent() -> frozenset[str]:
    """Return the names of the installed packages that the base does not bring."""
    return frozenset(
        module
        for module, owners in packages_distributions().items()
        if re.fullmatch(r"\w+", module) and module != "tests"
        if base().isdisjoint(map(canonicalize_name, owners))
    )


def python(
    folder: Path, code: str, *words: str, beside: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run code in a folder, with a state folder of its own, and one more package."""
    script = _RUN.format(absent=absent() - {beside}, then=code)
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=folder,
        env=os.environ | {"XDG_STATE_HOME": str(folder / "state"), "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def curvote(
    folder: Path, *words: str, beside: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `curvote` in a folder, with the base alone or one package beside it."""
    return python(folder, _CURVOTE, *words, beside=beside)
