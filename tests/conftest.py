"""What several test files need."""

from __future__ import annotations

from pathlib import Path

import pytest

from curvote.run.project import Project
from tests import plain


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a fresh project with one tiny pipeline, ``tiny``."""
    return plain.write(tmp_path, tiny=plain.TINY)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project whose tiny pipeline has run; tests must not change it."""
    shared = plain.write(tmp_path_factory.mktemp("finished"), tiny=plain.TINY)
    plain.run(shared)
    return shared
