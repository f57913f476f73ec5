"""Commands that only read do not import what only work needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from curvote.pipeline.config.project import Project
from tests import plain

HEAVY = ("scipy.stats", "sklearn", "prefect", "mlflow", "matplotlib", "skfda")
COMMANDS = ("list", "status", "scores tiny", "plan tiny", "gc --dry-run")
SCRIPT = f"""
import json, sys
from curvote.cli.__main__ import main
for command in {COMMANDS!r}:
    sys.argv[1:] = command.split()
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
    heavy = [name for name in {HEAVY!r} if name in sys.modules]
    print(json.dumps([command, heavy]), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project that has run once."""
    made = plain.write(tmp_path_factory.mktemp("imports"), tiny=plain.FEW)
    plain.run(made)
    return made


def test_reading_commands_import_nothing_heavy(project: Project) -> None:
    """In an interpreter of their own; it would take longer than all else they do."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=project.root,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stderr.splitlines() if line[:2] == '["']
    assert told == [[command, []] for command in COMMANDS]
