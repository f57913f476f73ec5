"""What commands take with 10 and with 1,000 runs on record.

`plan`, `status`, `scores` and `gc --dry-run`, each in a process of its own, as a user
gives them; processor time, the least of some repeats that take turns. The records are
those of one small study under other ids, as schedules make them. Fails where one of
them takes more than 1.5 times as long with a hundred times as many runs.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.history import record
from curvote.pipeline.config.project import Project
from curvote.pipeline.store import records
from tests import plain

FEW, MANY, MOST_TIMES = 10, 1000, 1.5
COMMANDS = {
    "plan": ["plan", "tiny"],
    "status": ["status"],
    "scores": ["scores", "tiny"],
    "gc": ["gc", "--dry-run"],
}
STUDY = plain.TINY | {"replicates": 2, "epsilon": [4], "learners": ["centroid"]}


def project_with(root: Path, runs: int) -> Project:
    """Return a project whose one study ran so often."""
    project = plain.write(root, tiny=STUDY)
    made = plain.run(project)
    for number in range(1, runs):
        run = f"{made.id}-{number:04d}"
        records.save_record(project, replace(made, id=run, sequence=0))
    assert len(records.load_records(project)) == runs
    return project


def seconds(project: Project, words: list[str]) -> float:
    """Return the processor time of one command."""
    before = _children()
    subprocess.run(
        [sys.executable, "-m", "curvote.cli", *words, "--project", project.root],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    ratios, sizes = {}, {}
    with TemporaryDirectory() as folder:
        few, many = (project_with(Path(folder, str(n)), n) for n in (FEW, MANY))
        for name, words in COMMANDS.items():
            pairs = [
                (seconds(few, words), seconds(many, words))
                for _ in range(given.repeats)
            ]
            quick, slow = (min(each) for each in zip(*pairs, strict=True))
            print(f"{name:7} {quick:6.2f} s with {FEW}, {slow:6.2f} s with {MANY:,}")
            ratios[name] = slow / quick
            sizes[f"{name}, s"] = slow
    return record(
        "history", ratios, sizes=sizes, bounds=dict.fromkeys(ratios, MOST_TIMES)
    )


if __name__ == "__main__":
    sys.exit(main())
