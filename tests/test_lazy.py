"""Packages that import their names on first use look like any other package."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests import plain

# What no command imports that does not need it: each takes a tenth of a second or more.
HEAVY = ["pandas", "sklearn", "matplotlib", "mlflow", "prefect"]
PUBLIC = ["", ".labels", ".mechanisms", ".theory", ".transfer", ".utility"]


@pytest.mark.parametrize("inside", PUBLIC)
def test_dir_lists_what_a_package_exports_and_nothing_of_its_machinery(
    inside: str,
) -> None:
    """All names of ``__all__`` before any was asked for, and no helper."""
    code = f"import curvote{inside} as p; print(*dir(p)); print(*p.__all__)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    listed, promised = (set(line.split()) for line in done.stdout.splitlines())
    assert promised <= listed
    assert not listed & {"TYPE_CHECKING", "exports", "annotations"}


@pytest.mark.parametrize("inside", PUBLIC)
def test_every_name_that_is_promised_is_there(inside: str) -> None:
    """What ``__all__`` says can be had; another name is an AttributeError."""
    package = import_module(f"curvote{inside}")
    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'") as refused:
        _ = package.nothing
    # By these Python finds what it asks "Did you mean ...?" of.
    assert (refused.value.name, refused.value.obj) == ("nothing", package)


@pytest.mark.parametrize(
    ("words", "further"),
    [
        ("--help", ["numpy", "pydantic"]),
        ("list", ["scipy", "pyarrow"]),
        ("status", ["scipy", "pyarrow"]),
        ("plan demo", ["pyarrow.parquet"]),
    ],
)
def test_a_command_imports_what_it_needs(
    words: str, further: list[str], tmp_path: Path
) -> None:
    """In a process of its own: this one has imported all of them."""
    plain.write(tmp_path, demo=plain.FEW)
    unneeded = HEAVY + further
    code = (
        "import atexit, sys\n"
        f"names = {unneeded!r}\n"
        "atexit.register(lambda: print('!', *[n for n in names if n in sys.modules]))\n"
        f"sys.argv = ['curvote', *{words.split()!r}]\n"
        "from curvote.cli.__main__ import main\n"
        "main()"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "!"
