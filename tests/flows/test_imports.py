"""Commands that only read do not import what only work needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from curvote.pipeline.config.project import Project

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


def test_reading_commands_import_nothing_heavy(finished: Project) -> None:
    """In an interpreter of their own; it would take longer than all else they do."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=finished.root,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stderr.splitlines() if line[:2] == '["']
    assert told == [[command, []] for command in COMMANDS]
