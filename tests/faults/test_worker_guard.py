"""``kill -9`` of a run: no worker outlives it, whatever its engine is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import processes_of, until

pytestmark = pytest.mark.faults
ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from curvote.pipeline.run.engines import Engine
from tests import dying

if __name__ == "__main__":
    with Engine(sys.argv[1], 2) as engine:
        list(engine.run(dying.slow, range(200)))
"""


@pytest.mark.parametrize("name", ["local", "threads", "dask"])
def test_no_worker_outlives_its_run(tmp_path: Path, name: str) -> None:
    """Not even for 10 s; dask's own supervisor sees to it, for loky our guard does."""
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    home = {"PREFECT_HOME": str(tmp_path / "data" / "state" / "prefect")}
    run = subprocess.Popen(
        [sys.executable, str(script), name],
        env=os.environ | home | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        most = 1 if name == "threads" else 3
        assert until(lambda: len(processes_of(tmp_path)) >= most, 60)
        assert until(lambda: _at_work(run.pid), 60)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert until(lambda: not processes_of(tmp_path), 10), "a worker was left"


def _at_work(pid: int) -> bool:
    """Say whether a run has threads that wait for its workers, or work."""
    return len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
