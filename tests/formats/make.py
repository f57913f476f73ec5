"""Make an archive of all durable files as this version writes them (see README.md)."""

import json
import shutil
import sqlite3
import sys
import tarfile
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from curvote.flows.environment import process_tag
from curvote.intake.box import Intake
from curvote.messages.message import parse_message
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.config.source import keyed_digest
from curvote.pipeline.run import audit_tasks
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.store import records
from curvote.wire.envelope import issue_invitations, seal_message
from tests import plain, production, rounds
from tests.releasing import Client

SOURCE = {"name": "simulated", "points": 6}
FEW = {"source": SOURCE, "train": {"count": 2, "size": 6}}
TINY = plain.TINY | FEW
TINY |= {"clients": {"train": 12, "vote": 20, "test": 10}, "replicates": 2}
TINY |= {"epsilon": [4], "learners": ["centroid"]}
REAL = production.REAL | FEW | {"clients": {"train": 12, "vote": 20}}


def make(root: Path) -> None:
    """Write a project, with all that it keeps, into a folder."""
    project = plain.write(root, tiny=TINY, real=REAL)
    record = plain.run(project)
    verdicts = [
        (t, {"verdict": "holds"}) for t in audit_tasks.run_tasks(project, record)
    ]
    audit_tasks.save_verdicts(project, "tiny", verdicts)
    made = production.plan(project)
    configured = PipelinesFile(project).configure_pipeline("real")
    release = records.record_start(project, configured, made.steps, process_tag())
    for step in made.steps_to_run():
        execute_step(project, step)
    records.record_end(project, release, "completed")
    keyed_digest(project, "0" * 64)
    take_in(project, root / "wire")
    (root / "client").mkdir()
    Client(root / "client").release()
    shutil.rmtree(project.state / "locks", ignore_errors=True)
    for path in root.rglob("*.sqlite"):
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def take_in(project: Project, wire: Path) -> None:
    """Open two rounds, close one, and keep what travelled and what did not."""
    wire.mkdir()
    with Intake(project.intake) as intake:
        for task, came in ((rounds.REPORTS, 4), (rounds.VOTES, 2)):
            invited = issue_invitations(task, 4)
            given = {"pipeline": "elsewhere", "needed": 2, "invitations": invited}
            intake.open_round(task.asks, task=task, **given)
            sent = [
                seal_message(i, rounds.payload(task, i, k))
                for k, i in enumerate(invited)
            ]
            for data in sent[:came]:
                intake.take(data, parse_message)
            lines = "".join(json.dumps(each.to_json()) + "\n" for each in invited)
            (wire / f"invitations-{task.asks}.jsonl").write_text(lines)
            (wire / f"envelope-{task.asks}.json").write_bytes(sent[0])
            (wire / f"unsent-{task.asks}.json").write_bytes(sent[3])
            (wire / f"task-{task.asks}.json").write_bytes(rounds.signed(task))
        intake.close("report")


def main(archive: str) -> None:
    """Write the archive."""
    with TemporaryDirectory() as folder, tarfile.open(archive, "w:xz") as tar:
        make(Path(folder))
        for path in sorted(Path(folder).iterdir()):
            tar.add(path, path.name)


if __name__ == "__main__":
    main(sys.argv[1])
