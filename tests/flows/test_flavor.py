"""A run's model in MLflow: typed, with an invented example, served as it predicts."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.flows.server.launch import is_healthy, listen
from curvote.flows.tracking.cells import cell_artifacts, stage_facts
from curvote.flows.tracking.datasets import dataset_inputs
from curvote.flows.tracking.flavor import log_model
from curvote.pipeline.run.results import final_model, final_views
from curvote.pipeline.store.artifacts import Artifact
from tests import plain
from tests.flows import test_predict as own
from tests.pins.test_studies import finished
from tests.processes import until
from tests.run.test_final_models import into_folders

GRID = "[Tensor('float64', (-1, 20))]"
KINDS = {  # the study of each kind of model, and how its signature begins
    "mrma": GRID,
    "cells": GRID,
    "federated": "['server': long (required), '0': double (required)",
    "labels": "['x': double (required), 'y': double (required)]",
    "transfer": "['x1': double (required), 'x2': double (required)]",
    "table": "['age': double (optional), 'sex': string (optional), 'dose': double",
    "long": "['who': string (optional), 't': string (optional), 'v': double (opti",
}
PREDICT = """import sys, mlflow
mlflow.models.predict(sys.argv[1], input_path=sys.argv[2], env_manager="local")"""


def kept(
    kind: str, root: Path, patch: pytest.MonkeyPatch
) -> tuple[Any, Path, list[Artifact]]:
    """Return the model of a kind's smallest run, MLflow's folder, and what it is of."""
    if kind in {"table", "long"}:
        own.people().to_csv(root / "people.csv", index=False)
        own.measurements().to_csv(root / "long.csv", index=False)
        project = plain.write(root, own=own.STUDIES[kind])
        record = plain.run(project, "own")
    else:
        project, record = finished(kind, root / "run")
    view = final_views(project, record)[0]
    into_folders(root, patch)
    model = final_model(project, record, view.cell)
    stored = cell_artifacts(project, record, view.cell)
    return model, Path(log_model("", kind, model, stage_facts(stored))), stored


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_each_kind_answers_its_example(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a function and as a service that reads JSON; the example is nobody's."""
    import mlflow.pyfunc
    from mlflow.pyfunc.scoring_server import invocations

    model, place, stored = kept(kind, tmp_path, monkeypatch)
    loaded = mlflow.pyfunc.load_model(str(place))
    schema = loaded.metadata.get_input_schema()
    assert str(schema).startswith(KINDS[kind])
    expected = model.predict(loaded.input_example).tolist()
    assert {*expected} <= {*model.classes_.tolist()}
    body = (place / "serving_input_example.json").read_text()
    served = invocations(body, "application/json", loaded, schema).response
    assert json.loads(served)["predictions"] == expected
    turned = loaded.input_example.iloc[:, ::-1].assign(note="x")
    assert loaded.predict(turned).tolist() == expected
    # Statistics are told of what is drawn, the schema of all.
    for data in (given.dataset for given in dataset_inputs(stored)):
        assert kind != "labels" or "bayes_error" in data.profile
        assert kind not in {"table", "long"} or data.profile is None
        columns = kind in {"table", "labels", "transfer"}
        assert f"mlflow_{'col' if columns else 'tensor'}spec" in data.schema
    if kind in {"mrma", "cells"}:
        array = loaded.input_example.to_numpy()
        assert loaded.predict(array).tolist() == expected


def test_a_typed_table_takes_what_a_reader_of_csv_makes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole numbers, empty columns, texts for numbers, numbers for texts, part of it.

    MLflow's own check would refuse the first of them.
    """
    import mlflow.pyfunc
    from mlflow.exceptions import MlflowException
    from mlflow.pyfunc.scoring_server import invocations

    model, place, _ = kept("table", tmp_path, monkeypatch)
    loaded = mlflow.pyfunc.load_model(str(place))
    frame = own.people(8).drop(columns="outcome")
    whole = frame.assign(age=frame["age"].astype(np.int64))
    empty = whole.assign(sex=np.nan, dose=None)
    texts = frame.assign(age=frame["age"].astype(str), dose="k.A.")
    for given in (whole, empty, whole[whole["age"] > 40]):
        assert loaded.predict(given).tolist() == model.predict(given).tolist()
    with pytest.raises(UserError, match="no row can be used: dose is not a finite"):
        loaded.predict(texts)
    with pytest.raises(UserError, match="columns are missing"):
        loaded.predict(frame[["sex"]])
    assert loaded.input_example.to_numpy().tolist() == [[50.0, "f", 1.0]]  # nobody's
    assert "pyarrow==" in (place / "requirements.txt").read_text()
    csv = whole.to_csv(index=False)
    schema = loaded.metadata.get_input_schema()
    served = json.loads(invocations(csv, "text/csv", loaded, schema).response)
    assert served["predictions"] == model.predict(whole).tolist()
    conf = loaded.metadata.flavors["python_function"]
    monkeypatch.setitem(conf, "loader_module", "mlflow.sklearn")  # the check is there
    with pytest.raises(MlflowException, match="int64 to float64"):
        loaded.predict(whole)


@pytest.mark.faults  # starts MLflow's own server and a fresh process for each
@pytest.mark.parametrize("kind", ["mrma", "federated", "table", "long"])
def test_a_fresh_process_serves_the_example(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mlflow models serve` and `mlflow.models.predict` say the same."""
    _, place, _ = kept(kind, tmp_path, monkeypatch)
    programs = Path(sys.executable).parent  # MLflow looks for uvicorn on the path
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    example = place / "serving_input_example.json"
    said = subprocess.check_output([sys.executable, "-c", PREDICT, place, example])
    with listen(0) as free:
        address = "http://127.0.0.1:{1}".format(*free.getsockname())
    command = [programs / "mlflow", "models", "serve", "-m", place]
    command += ["--env-manager", "local", "-h", "127.0.0.1", "-p", address[17:]]
    log = (tmp_path / "log").open("wb")
    given = {"stdout": log, "stderr": log, "start_new_session": True}
    with log, subprocess.Popen(command, **given) as server:
        try:
            ready = until(lambda: is_healthy(address, 2), 120)
            assert ready, (tmp_path / "log").read_text()
            kind = {"Content-Type": "application/json"}
            body = example.read_bytes()
            request = urllib.request.Request(f"{address}/invocations", body, kind)
            served = json.loads(urllib.request.urlopen(request).read())
        finally:
            os.killpg(server.pid, signal.SIGTERM)
    assert json.loads(said) == served
