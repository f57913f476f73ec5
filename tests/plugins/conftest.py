"""Somebody else's package, as if it were installed."""

import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from curvote.base import registry

PACKAGE = Path(__file__).parent / "package"


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that holds the package, with the metadata pip would write."""
    site = tmp_path / "site"
    shutil.copytree(PACKAGE / "acme_noise", site / "acme_noise")
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    metadata = site / "acme_noise-1.0.dist-info"
    metadata.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n"
    (metadata / "METADATA").write_text(head)
    lines = []
    for group, names in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in names.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(site)
    registry._plugins.cache_clear()
    yield site
    registry._plugins.cache_clear()
    for name in [name for name in sys.modules if name.startswith("acme_noise")]:
        del sys.modules[name]
