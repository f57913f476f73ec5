"""Each extra in an empty environment, on every Python named, does what it promises.

``CURVOTE_PYTHONS`` lists interpreters, such as 3.11's and 3.13's; else this one is
taken. Packages come by pip's own settings, in the tested versions.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.test_client_silence import publish
from tests.fuzzing import invited
from tests.house import ROOT
from tests.valid_tasks import document, tasks
from tests.wheel.building import wheel

pytestmark = pytest.mark.faults  # minutes each: an environment of its own

PYTHONS = os.environ.get("CURVOTE_PYTHONS", sys.executable).split(os.pathsep)
MOST_BYTES = 60_000_000  # of wheels, for a person who sends one report
FIT = """
import numpy as np, curvote
curves = np.random.default_rng(0).normal(size=(400, 20))
labels = np.where(curves.mean(axis=1) > 0, "yes", "no")
model = curvote.DirectClassifier(epsilon=8, bounds=(-4, 4), random_state=0)
assert set(model.fit(curves, labels).predict(curves)) <= {"yes", "no"}
"""


class Environment:
    """An environment with one extra of the wheel; what it runs sees nothing else."""

    def __init__(self, root: Path, python: str, built: Path, extra: str) -> None:
        self.root, self.wanted = root, f"{built}[{extra}]"
        self.home = root / "home"
        self.home.mkdir()
        self.run(python, "-m", "venv", str(root / "venv"))
        self.pip("install", self.wanted)

    def run(self, *words: str) -> str:
        """Return what a command says; it must succeed."""
        kept = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
        done = subprocess.run(
            words,
            cwd=self.home,
            env=kept | {"XDG_STATE_HOME": str(self.root / "state")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def pip(self, command: str, *words: str) -> None:
        """Run pip with the tested versions."""
        tested = "-c", str(ROOT / "constraints.txt"), "--disable-pip-version-check"
        self.python("-m", "pip", command, "--quiet", *tested, *words)

    def python(self, *words: str) -> str:
        """Run its Python."""
        return self.run(str(self.root / "venv" / "bin" / "python"), *words)

    def curvote(self, *words: str) -> str:
        """Run its `curvote`."""
        return self.run(str(self.root / "venv" / "bin" / "curvote"), *words)

    def report(self, name: str) -> None:
        """Answer one task by `curvote client report`: one envelope lies there."""
        task = tasks()[name]
        points = task.encoding.projection.matrix.shape[1]
        (self.home / "curve.csv").write_text("\n".join(["0.5"] * points) + "\n")
        words = publish(self.home, document(task), invited(task, 1))
        words += ["--curve", "curve.csv", "--label", "yes", "--outbox", "outbox"]
        self.curvote("client", "report", *words)
        assert len([*self.home.glob("outbox/*.json")]) == 1


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel."""
    return wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(params=PYTHONS)
def python(request: pytest.FixtureRequest) -> str:
    """Return an interpreter."""
    return str(request.param)


def test_a_client_sends_a_report(tmp_path: Path, python: str, built: Path) -> None:
    """`curvote[client]`: at most 60 MB of wheels, and a report leaves."""
    own = Environment(tmp_path, python, built, "client")
    own.pip("download", "--dest", str(tmp_path / "wheels"), own.wanted)
    sizes = [path.stat().st_size for path in (tmp_path / "wheels").iterdir()]
    print(f"{python}: {len(sizes)} wheels, {sum(sizes) / 1e6:.1f} MB")
    assert sum(sizes) <= MOST_BYTES
    assert own.curvote("--version").startswith("curvote ")
    own.report("mrma-report-0")


def test_a_client_of_direct_sends_a_report(
    tmp_path: Path, python: str, built: Path
) -> None:
    """`curvote[laws]`: PrivUnit's noise too."""
    Environment(tmp_path, python, built, "laws").report("direct-report-0")


def test_the_method_fits(tmp_path: Path, python: str, built: Path) -> None:
    """`curvote[method]`: an estimator, and the audit of a mechanism."""
    own = Environment(tmp_path, python, built, "method")
    own.python("-c", FIT)
    assert "laplace" in own.curvote("audit", "laplace", "--samples", "10000")


@pytest.mark.parametrize("extra", ["pipeline", "all"])
def test_the_demo_runs_in_an_empty_folder(
    tmp_path: Path, python: str, built: Path, extra: str
) -> None:
    """`curvote[pipeline]`, with or without `tracking`: curvote's own pipelines run."""
    own = Environment(tmp_path, python, built, extra)
    assert "data/reports/demo/report.html" in own.curvote("demo")
    assert (own.home / "data/reports/demo/report.html").is_file()
    assert (own.home / "data/state/mlflow.db").exists() == (extra == "all")
    assert "demo" in own.curvote("status")
