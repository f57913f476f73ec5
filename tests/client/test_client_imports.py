"""What a client's process holds: no table library, no statistics, no orchestrator."""

import json
import subprocess
import sys
from pathlib import Path

from tests.client.test_client_silence import publish
from tests.fuzzing import invited
from tests.valid_tasks import document, tasks

HEAVY = ("pandas", "scipy", "sklearn", "pyarrow", "matplotlib", "prefect", "mlflow")
HEAVY += ("starlette", "uvicorn", "dask", "psycopg")
RUN = f"""
import json, os, sys
from curvote.cli.__main__ import main
for name in json.load(sys.stdin):
    os.chdir(name)
    os.environ["XDG_STATE_HOME"] = os.getcwd()
    try:
        main()
    except SystemExit as end:
        assert not end.code, (name, end.code)
    os.chdir("..")
    heavy = [module for module in {HEAVY} if module in sys.modules]
    print(json.dumps([name, heavy]), file=sys.stderr)
"""
NAMES = [
    "mrma-report-0",
    "mrma-vote-0",
    "votes-vote-0",
    "majority-report-0",
    "counts-report-0",
    "online-vote-0",
    "federated-report-0",
]


def test_a_client_loads_neither_pandas_nor_scipy(tmp_path: Path) -> None:
    """From the command line to the envelope, client after client in one process."""
    for name in NAMES:
        task, home = tasks()[name], tmp_path / name
        points = task.encoding.projection.matrix.shape[1]
        home.mkdir()
        (home / "curve.csv").write_text("\n".join(["0.5"] * points) + "\n")
        words = publish(home, document(task), invited(task, 1))
    words += ["--curve", "curve.csv", "--label", "yes", "--outbox", "outbox"]
    done = subprocess.run(
        [sys.executable, "-c", RUN, "client", "answer", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        input=json.dumps(NAMES),
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stderr.splitlines() if line[:2] == '["']
    assert told == [[name, []] for name in NAMES]
    assert len([*tmp_path.glob("*/outbox/*.json")]) == len(NAMES)
