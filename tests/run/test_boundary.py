"""The trust boundary: what the server's side holds, and what it never sees."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from curvote.chain.lookup import find_system
from curvote.data.simulation import simulated
from curvote.messages.roles import split_roles
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project, is_client_side
from curvote.pipeline.run.execution import execute_step
from curvote.pipeline.run.planner import make_plan
from curvote.pipeline.store.artifacts import Artifact, all_folders, stage_side
from curvote.pipeline.store.parquet import TableFile
from curvote.systems.common.tables import REPORT_VARIANTS
from tests import plain
from tests.declared import SERVER, STAGES, TABLES

CHAINS = {
    "mrma": plain.TINY,
    "sgd": plain.of("sgd") | {"project": {"basis": "bspline", "size": 4}},
    "federated": plain.TINY
    | {
        "protocol": "federated",
        "source": {"name": "simulated_servers", "points": 20, "servers": [1, 1, 1]},
        "replicates": 2,
    },
    "online": plain.TINY
    | {
        "protocol": "online",
        "source": {"name": "drifting", "points": 20, "periods": 2},
        "online": {"arrivals": 2},
        "replicates": 2,
    },
}
OTHERS = ("direct", "mrma_privunit", "votes", "majority")
CHAINS["direct and others"] = plain.of(*OTHERS) | {
    "protocols": [
        {"name": "direct", "label": "joint", "direct.arm": "joint"},
        {"name": "direct", "label": "two", "direct.arm": "two"},
        "mrma_privunit",
        {"name": "votes", "votes.directions": 7},
        "majority",
    ],
    "replicates": 2,
}
CHAINS["several classes"] = plain.of("mrma", "direct") | {
    "protocols": ["mrma", {"name": "direct", "direct.arm": "one_of"}],
    "source": {"name": "circle", "n_classes": 3},
    "clients": {"train": 150, "vote": 150, "test": 40},
    "project": {"basis": "identity"},
    "replicates": 2,
}
CHAINS["transfer"] = {
    "source": {"name": "posterior_drift", "n": 30, "m": 1, "test": 20},
    "transfer": {"test": 20},
    "protocols": [
        {"name": "transfer", "label": "cells", "release": "cells", "matrix": 4},
        {"name": "transfer", "label": "moments", "release": "moments"},
        {"name": "transfer_clean", "label": "clean"},
    ],
    "epsilon": [4],
    "replicates": 2,
    "seed": 7,
}
CELLS = ("counts", "stump", "tree")
CHAINS["cells"] = plain.of(*CELLS) | {"protocols": [*CELLS], "replicates": 2}
CHAINS["cells"]["project"] = {"basis": "bspline", "size": 4}
# Volunteers' records are public, and stand on the side of the clients all the same.
CHAINS["joined"] = plain.of("joined") | {
    "clients": {"public": 20, "train": 60, "vote": 80, "test": 40},
    "project": {"basis": "bspline", "size": 4},
    "replicates": 2,
}
CHAINS["whitened"] = CHAINS["joined"] | {"protocol": "whitened"}
CHAINS["pilot"] = CHAINS["cells"] | {"protocols": ["pilot"]}
CANARY = 12.345678901234567
# Features are public there, and labels are what to look for: tests/protocols/labels.
OF_LABELS = {
    table.name
    for name in ("labels", "labels_two", "labels_regression", "monitor")
    for table in find_system(name).tables
    if table.side == "server"
}


def artifacts(project: Project) -> list[Artifact]:
    """Return every artifact of a project."""
    return [Artifact(folder) for folder in all_folders(project)]


def numbers(one: Artifact, table: str) -> np.ndarray:
    """Return every number of a table, vectors flattened."""
    found = []
    for column in pq.read_table(one.path / f"{table}.parquet").columns:
        for chunk in column.chunks:
            flat = chunk.flatten() if hasattr(chunk.type, "list_size") else chunk
            if "dictionary" not in str(flat.type):
                found.append(np.asarray(flat.to_numpy(zero_copy_only=False), float))
    return np.concatenate(found)


def test_server_tables_hold_no_client_and_no_raw_value() -> None:
    """No id, no group, no curve, no coefficients in any server-side contract."""
    private = {"client_id", "group", "curve", "coefficients"}
    assert {"reports", "labels", "weak", "votes", "ensemble"} < set(SERVER)
    for name in SERVER:
        assert not private & set(TABLES[name].columns)


def test_a_table_is_the_same_in_every_system() -> None:
    """A file is read by its table's name alone, where it does not say its kinds."""
    for table in (table for stage in STAGES for table in stage.tables):
        assert table == TABLES[table.name]
        assert table.columns == TABLES[table.name].columns


def test_a_table_of_the_clients_is_made_on_their_side_only() -> None:
    """Where an artifact stands follows from its stage, and fits each of its tables."""
    for stage in STAGES:
        assert stage_side(stage.name) == stage.side
        sides = {table.side for table in stage.tables}
        if any(side.startswith("client") for side in sides):
            assert is_client_side(stage.side)
    assert is_client_side(stage_side("a stage that no protocol has any more"))


def test_server_stages_read_server_tables_only(
    done: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Train asks for reports and aggregate for votes, and for nothing else."""
    asked: set[str] = set()
    real = TableFile.columns

    def watched(self: TableFile, *rows: Any) -> object:
        asked.add(self.name)
        return real(self, *rows)

    monkeypatch.setattr(TableFile, "columns", watched)
    steps = [s for s in plain.plan(done).steps if s.stage.side == "server"]
    assert {step.stage.name for step in steps} == {"train", "aggregate"}
    for step in steps:
        execute_step(done, replace(step, action="run", forced=True))
    assert asked == {"reports", "votes"}


def test_reports_stand_in_random_order(finished: Project) -> None:
    """A row's place says nothing about who sent it: training clients came first."""
    (path, *_) = finished.artifacts.glob("privatize/*")
    rows = Artifact(path).columns("reports", (0,))
    mrma = rows["arm"] == REPORT_VARIANTS.index("mrma")
    assert mrma.sum() == 60
    assert len(mrma) == 140
    assert not mrma[:60].all()


def test_a_canary_record_appears_in_no_server_side_table(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every client's curve, coefficients and z are searched for; the search works."""
    real = simulated.generate

    def planted(generator: np.random.Generator, n: int, points: int = 100) -> object:
        curves, labels = real(generator, n, points)
        curves[::7, 3] = CANARY
        return curves, labels

    monkeypatch.setattr(simulated, "generate", planted)
    plain.run(project)
    held = artifacts(project)
    encoded = next(a for a in held if a.stage == "project")
    rows = [encoded.columns("encoded", r) for r in encoded.places("encoded")]
    secret = np.concatenate(
        [[CANARY], *(r[name].ravel() for r in rows for name in ("coefficients", "z"))]
    )
    seen = {
        (a.stage, table): np.isin(secret, numbers(a, table)).sum()
        for a in held
        for table in a.manifest["tables"]
    }
    assert seen["ingest", "clients"] == 1
    assert seen["project", "encoded"] == len(secret) - 1
    server = {place: n for place, n in seen.items() if place[1] in SERVER}
    assert len(server) == 4
    assert not any(server.values())
    found = {a.path for a in held for t in a.manifest["tables"] if seen[a.stage, t]}
    assert {path.parent.parent for path in found} == {project.clients}
    for one in held:
        if one.stage != "ingest":
            assert "12.3456789" not in (one.path / "manifest.json").read_text()


def test_a_report_that_echoes_a_record_is_found(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: noise is never added, and the search sees it."""
    from curvote.client.report import Reporter

    monkeypatch.setattr(
        Reporter, "release", lambda self, z, labels, *noise, **how: (z, labels)
    )
    plain.run(project)
    held = artifacts(project)
    encoded = next(a for a in held if a.stage == "project")
    secret = encoded.columns("encoded", (0,))["z"].ravel()
    reports = [a for a in held if a.stage == "privatize"]
    assert all(np.isin(secret, numbers(a, "reports")).sum() > 300 for a in reports)


def test_no_float_noise_is_drawn_on_the_clients_side() -> None:
    """`rng.laplace` and its kin leak through their low bits: none stands here."""
    banned = {"laplace", "normal", "standard_normal", "exponential", "uniform"}
    package = Path(simulated.__file__).parents[1]
    for folder in ("client", "mechanisms"):
        for path in (package / folder).glob("*.py"):
            called = {
                node.func.attr
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            }
            assert not called & banned, path


def test_constants_come_from_volunteers_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changing everybody else's curve leaves the public constants as they are."""
    tiny = plain.TINY | {
        "clients": {"public": 10, "train": 60, "vote": 80, "test": 40},
        "project": {
            "basis": "bspline",
            "size": 4,
            "centre": "volunteers",
            "scale": "volunteers",
        },
    }
    real = simulated.generate
    constants = []
    for shift in (0.0, 5.0):

        def shifted(
            generator: np.random.Generator,
            n: int,
            points: int = 100,
            shift: float = shift,
        ) -> object:
            curves, labels = real(generator, n, points)
            roles = split_roles(7, 0, n, tiny["clients"])
            others = np.setdiff1d(np.arange(n), roles["public"])
            curves[others] += shift
            return curves, labels

        monkeypatch.setattr(simulated, "generate", shifted)
        root = tmp_path / str(shift)
        root.mkdir()
        project = plain.write(root, tiny=tiny | {"replicates": 1})
        plain.run(project)
        (path,) = project.clients.glob("project/*")
        constants.append(Artifact(path).columns("constants", (0,))["value"])
    assert np.array_equal(*constants)
    assert constants[0].shape == (2, 4)


def test_public_facts_of_a_pipeline_are_not_computed_from_clients(
    finished: Project,
) -> None:
    """A plan, whose keys steer everything, is the same with and without the tables."""
    configured = PipelinesFile(finished).configure_pipeline("tiny")
    elsewhere = Project(finished.root / "nowhere")
    keys = [
        [step.key for step in make_plan(place, configured).steps]
        for place in (finished, elsewhere)
    ]
    assert keys[0] == keys[1]
