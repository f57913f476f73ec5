"""Commands that only read do not import what only work needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from curvote.run.project import Project
from tests import plain

HEAVY = ("scipy.stats", "sklearn", "prefect", "mlflow", "matplotlib", "skfda")
SCRIPT = f"""
import json, sys
sys.argv = ["curvote", *sys.argv[1:]]
from curvote.flows.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), file=sys.stderr)
"""
FEW = plain.TINY | {"replicates": 2, "epsilon": [4], "learners": ["centroid"]}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project that has run once."""
    made = plain.write(tmp_path_factory.mktemp("imports"), tiny=FEW)
    plain.run(made)
    return made


@pytest.mark.parametrize(
    "command", ["plan tiny", "list", "status", "scores tiny", "gc --dry-run"]
)
def test_a_reading_command_imports_nothing_heavy(
    project: Project, command: str
) -> None:
    """In an interpreter of its own; they would take longer than all else it does."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *command.split()],
        cwd=project.root,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr.splitlines()[-1]) == []
