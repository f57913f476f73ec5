"""What a client's process holds: no table library, no statistics, no orchestrator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.test_client_silence import publish
from tests.fuzzing import invited
from tests.valid_tasks import document, tasks

HEAVY = ("pandas", "scipy", "sklearn", "pyarrow", "matplotlib", "prefect", "mlflow")
HEAVY += ("starlette", "uvicorn", "dask", "psycopg")
RUN = f"""
import atexit, json, sys
from curvote.cli.__main__ import main
seen = lambda: [name for name in {HEAVY} if name in sys.modules]
atexit.register(lambda: print(json.dumps(seen()), file=sys.stderr))
main()
"""


@pytest.mark.parametrize(
    "name",
    [
        "mrma-report-0",
        "mrma-vote-0",
        "votes-vote-0",
        "majority-report-0",
        "counts-report-0",
        "online-vote-0",
        "federated-report-0",
    ],
)
def test_a_client_loads_neither_pandas_nor_scipy(tmp_path: Path, name: str) -> None:
    """From the command line to the envelope, in an interpreter of its own."""
    task = tasks()[name]
    points = task.encoding.projection.matrix.shape[1]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "curve.csv").write_text("\n".join(["0.5"] * points) + "\n")
    words = publish(tmp_path / "a", document(task), invited(task, 1))
    words += ["--curve", "curve.csv", "--label", "yes", "--outbox", "outbox"]
    done = subprocess.run(
        [sys.executable, "-c", RUN, "client", "answer", *words],
        cwd=tmp_path / "a",
        capture_output=True,
        text=True,
        env=os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")},
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len([*(tmp_path / "a" / "outbox").glob("*.json")]) == 1
    assert json.loads(done.stderr.splitlines()[-1]) == []
