"""Packages that import their names on first use look like any other package."""

import subprocess
import sys
from importlib import import_module

import pytest

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
