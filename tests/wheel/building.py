"""A wheel of the checkout, built without a network from a copy of its parts."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import setuptools

from tests.house import ROOT

_PARTS = "pyproject.toml PACKAGE.md LICENSE pipelines.yaml curvote flows tasks data"


def wheel(folder: Path) -> Path:
    """Build the wheel in ``folder`` and return it; skipped where no builder is."""
    if int(setuptools.__version__.partition(".")[0]) < 77:
        pytest.skip("setuptools >= 77 builds the wheel: make test installs it")
    copy = folder / "source"
    copy.mkdir()
    for name in _PARTS.split():
        _copy(ROOT / name, copy / name)
    made = folder / "dist"
    how = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", made]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", *how, copy],
        check=True,
        timeout=300,
    )
    (found,) = made.glob("*.whl")
    return found


def _copy(given: Path, to: Path) -> None:
    """Copy a part as it is, links as links; of data/ what git tracks."""
    if given.name == "data":
        to.mkdir()
        shutil.copy(given / "sources.toml", to)
    elif given.is_dir():
        aside = shutil.ignore_patterns("__pycache__")
        shutil.copytree(given, to, symlinks=True, ignore=aside)
    else:
        shutil.copy(given, to)
