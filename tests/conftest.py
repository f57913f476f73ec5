"""What several test files need."""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings

# Before NumPy is there: a second thread waits busily, and a worker has one processor.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

from curvote.data import raw_files
from curvote.flows.environment import file_locked
from curvote.pipeline.config.project import Project
from curvote.pipeline.plan import definitions
from tests import drawings, phoneme_file, plain, prepared
from tests import town as town_

# No test is timed: a new Python builds Hypothesis's tables of letters first.
settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")

# Typer makes the tree of an app's commands at each call: .1 s, hundreds of times.
typer.main.get_command = typer.testing._get_command = cache(typer.main.get_command)

# A worker holds millions of objects that stay: to look for garbage among them as often
# as by default takes 7 % of the time.
gc.set_threshold(50_000, 20, 50)

# Where there is room for it, temporary files lie in memory: tests wait for no disk.
MEMORY, ROOM = Path("/dev/shm"), 8 << 30
if (
    "TMPDIR" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC  # some tests start what they write
    and shutil.disk_usage(MEMORY).free > ROOM
):
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

NUMBERS = count()
# Folders whose tests start servers, browsers and whole runs, or draw by the million.
SLOW = {"audit", "browser", "faults", "flows", "reproduce", "run", "wheel"}


# Files of five seconds and more go first: none is left for one processor at the end.
LONG = {
    "datasets/test_own_data_page.py",
    "flows/test_rehearsal.py",
    "flows/test_rerun.py",
    "flows/test_serving.py",
    "run/test_final_models.py",
    "run/test_every_stage.py",
    "labels/neural/test_neural.py",
    "monitor/test_models.py",
    "monitor/test_year.py",
    "audit/test_audit_commands.py",
    "run/test_clusters.py",
    "pins/test_commands.py",
    "pins/test_studies.py",
    "run/plan/test_chain.py",
    "run/plan/test_reruns.py",
    "flows/test_tracking.py",
    "flows/test_databases.py",
    "test_docs.py",
    "test_toy.py",
    "wheel/test_wheel.py",
    "wheel/test_base.py",
}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Parse the product once for all workers, and let forks share what there is.

    Notes of the parsing stand in pytest's cache; no search for garbage touches the
    memory that forks share.
    """
    kept: pytest.Cache | None = getattr(session.config, "cache", None)
    if kept:
        folder = kept.mkdir("curvote")
        with file_locked(folder / "code.lock"):
            definitions.NOTES.open(folder / "code.json")
            for path in definitions.PACKAGE.rglob("*.py"):
                parts = (
                    path.relative_to(definitions.PACKAGE.parent).with_suffix("").parts
                )
                name = ".".join(parts).removesuffix(".__init__")
                definitions._module_in(path, name, definitions._stamp(path))
            definitions.NOTES.keep()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Start one more than there are processors: some tests wait for a process."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what ``make quick`` leaves out, and put long files first."""
    names = {item: item.path.relative_to(Path(__file__).parent) for item in items}
    for item, name in names.items():
        if name.parts[0] in SLOW:
            item.add_marker("slow")
    items.sort(key=lambda item: names[item].as_posix() not in LONG)


@pytest.fixture(scope="session", autouse=True)
def no_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep what fixtures of a whole session start away from the user's own ledger."""
    states = tmp_path_factory.mktemp("states")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(states))
        yield states


@pytest.fixture(autouse=True)
def state_home(no_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder for state, of each test and the processes that it starts.

    It is made by whoever first writes there.
    """
    folder = no_home / str(next(NUMBERS))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture
def blank_figures() -> Iterator[None]:
    """Let pages hold blank drawings, where a test looks at their words."""
    with drawings.left_blank():
        yield


@pytest.fixture
def own_variables() -> Iterator[None]:
    """Name no server and no state folder; put the environment back at the end."""
    before = dict(os.environ)
    database = "PREFECT_API_DATABASE_CONNECTION_URL"
    ours = ("PREFECT_API_URL", "PREFECT_HOME", "MLFLOW_TRACKING_URI", "CURVOTE_STATE")
    for name in (*ours, database):
        os.environ.pop(name, None)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a fresh project with one tiny pipeline, ``tiny``."""
    return plain.write(tmp_path, tiny=plain.TINY)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project whose tiny pipeline has run; tests must not change it."""

    def make(root: Path) -> None:
        plain.run(plain.write(root, tiny=plain.TINY))

    return Project(prepared.folder(tmp_path_factory, "finished", make))


@pytest.fixture
def done(finished: Project, tmp_path: Path) -> Project:
    """Return a copy of the finished project, to be changed at will."""
    shutil.copytree(finished.root, tmp_path, dirs_exist_ok=True)
    return Project(tmp_path)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project that knows one edition of a small fake phoneme file.

    It has no mirror, no proxy and no second attempt, unless a test says so.
    """
    monkeypatch.delenv(raw_files.MIRROR, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(raw_files, "RETRIES", 0)
    phoneme_file.write_sources(tmp_path, phoneme_file.TEXT)
    (tmp_path / "pipelines.yaml").touch()
    (tmp_path / "data" / "raw").mkdir()
    return tmp_path


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project that has released once; tests must not change it."""

    def make(root: Path) -> None:
        made = town_.write(root)
        town_.export(root, str)
        town_.run(made)

    return Project(prepared.folder(tmp_path_factory, "first", make))


@pytest.fixture(scope="session")
def databases(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """Return a project with new databases of Prefect and MLflow, and nothing else.

    `prepared.put_databases` copies them: their migrations are half of what a first run
    takes. Pytest's cache keeps them for later sessions.
    """
    cache: pytest.Cache | None = getattr(request.config, "cache", None)
    kept = cache.mkdir("curvote") if cache else None
    name, make = prepared.databases_name(), prepared.make_databases
    return prepared.folder(tmp_path_factory, name, make, kept)


@pytest.fixture
def town(first: Project, tmp_path: Path) -> Project:
    """Return a copy of it, to be changed at will."""
    shutil.copytree(first.root, tmp_path, dirs_exist_ok=True)
    return Project(tmp_path)
