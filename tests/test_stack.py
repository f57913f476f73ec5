"""The installed environment works: traps that no dependency check can find."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]

# Name, last version seen working, first version seen broken.
TRAPS = [
    ("fastapi", "0.154.0", "0.155.0"),
    ("sqlalchemy", "2.0.58", "2.1.9"),
    ("multimethod", "2.0.2", "2.1"),
]


def _project() -> dict[str, Requirement]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [table["dependencies"], *table["optional-dependencies"].values()]
    required = [Requirement(line) for group in groups for line in group]
    known = {canonicalize_name(each.name): each for each in required}
    return {name: each for name, each in known.items() if name != "curvote"}


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): number for name, number in pins}


@pytest.mark.parametrize(("name", "good", "broken"), TRAPS)
def test_range_ends_before_the_broken_version(
    name: str, good: str, broken: str
) -> None:
    """pyproject.toml lets the last working version in and the first broken one not."""
    allowed = _project()[name].specifier
    assert allowed.contains(good)
    assert not allowed.contains(broken)
    assert allowed.contains(version(name))


def test_every_requirement_is_pinned_inside_its_range() -> None:
    """constraints.txt pins each direct requirement to a version its range allows."""
    pins = _pins()
    outside = [
        f"{requirement} is pinned to {pins.get(name)}"
        for name, requirement in _project().items()
        if name not in pins or not requirement.specifier.contains(pins[name])
    ]
    assert not outside


def test_constraints_hold_versions_and_nothing_else() -> None:
    """Each pin is ``name==version``: no index, no file, no editable line; sorted."""
    names = list(_pins())
    assert names == sorted(names)
    assert "curvote" not in names


@pytest.mark.faults  # by itself; `make test` starts such servers in tests/flows
def test_prefect_server_imports(tmp_path: Path) -> None:
    """Prefect's server API loads with the installed fastapi (0.155 breaks it)."""
    quiet = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    subprocess.run(
        [sys.executable, "-c", "import prefect.server.api.server"],
        env={**os.environ, **quiet, "PREFECT_HOME": str(tmp_path)},
        check=True,
        timeout=120,
    )


def test_to_basis_recovers_a_curve_of_the_basis() -> None:
    """scikit-fda projects: a curve that lies in the basis keeps its coefficients."""
    from skfda import FDataGrid
    from skfda.representation.basis import BSplineBasis

    basis = BSplineBasis(domain_range=(0, 1), n_basis=4)
    grid = np.linspace(0, 1, 20)
    wanted = np.array([[0.5, -1.0, 2.0, 0.25]])
    curves = wanted @ basis(grid)[..., 0]
    found = FDataGrid(curves, grid).to_basis(basis).coefficients
    np.testing.assert_allclose(found, wanted, atol=1e-10)


def test_saved_model_loads_without_pickle(tmp_path: Path) -> None:
    """MLflow saves a linear classifier by skops and loads one that predicts alike."""
    import mlflow.sklearn
    from sklearn.linear_model import LogisticRegression

    features, labels = np.array([[-1.0], [-0.5], [0.5], [1.0]]), [-1, -1, 1, 1]
    model = LogisticRegression().fit(features, labels)
    mlflow.sklearn.save_model(
        model,
        tmp_path / "model",
        pip_requirements=["scikit-learn"],
        serialization_format="skops",
    )
    loaded = mlflow.sklearn.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(features), labels)
