"""Models that today's version saved are loaded by tomorrow's, and answer the same.

The archive holds a folder of MLflow for each class of model that a run keeps, a file of
skops for each estimator, and beside each the records that it was asked about.
"""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow.pyfunc
import numpy as np
import pandas as pd
import pytest
import skops.io

import curvote
from curvote.base.durable import private_folder
from curvote.chain.lookup import all_systems
from curvote.flows.tracking.flavor import log_model
from curvote.pipeline.run.results import final_model, final_views
from tests.earlier import unpack
from tests.pins import pinned
from tests.pins.test_studies import NUMBERS, STUDIES, finished, records
from tests.run.test_final_models import into_folders

KIND = "models"
ARCHIVE = pinned.RECORDED / "models.tar.xz"
INPUTS = "inputs.json"
LABELS = "PrivateLabelClassifier"
# An estimator, and how it is built; a word after its name tells several apart.
ESTIMATORS: dict[str, dict[str, Any]] = {
    "MRMAClassifier": {"epsilon": 4.0},
    "DirectClassifier": {"epsilon": 4.0},
    "TransferKernelClassifier": {"epsilon": 4.0},
    "PrivateLabelRegressor": {"epsilon": 4.0},
    "PrivateSearchCV": {"holdout": 0.5},
    "Spectral": {"m": 2, "anchors": 20},
    LABELS: {"epsilon": 4.0},
    **{
        f"{LABELS} {name}": {"estimator": name}
        for name in ("knn", "likelihood", "ridge")
    },
}


def fitted() -> Iterator[tuple[str, Any, Any]]:
    """Yield each estimator by its name, and records that it may be asked about."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (200, 3))
    for name, params in ESTIMATORS.items():
        made = getattr(curvote, name.partition(" ")[0])(random_state=0, **params)
        yield name, made.fit(x, (x[:, 0] > 0).astype(int)), x[:40]


def write(root: Path, patch: pytest.MonkeyPatch) -> None:
    """Write the archive: the first model of each system, and all estimators."""
    place, asked = root / "models", {}
    into_folders(place, patch)
    views_ = (
        v for s in STUDIES if s != NUMBERS for v in final_views(*finished(s, root / s))
    )
    for view in views_:
        model = final_model(view.project, view.record, view.cell)
        name = view.system.name
        if model is not None and name not in asked:
            frame = records(view, model)
            log_model("", name, model)
            asked[name] = {"columns": [*frame], "rows": frame.to_numpy().tolist()}
    for name, model, rows in fitted():
        skops.io.dump(model, place / f"{name}.skops")
        asked[name] = {"columns": None, "rows": rows.tolist()}
    (place / INPUTS).write_text(json.dumps(asked))
    with tarfile.open(ARCHIVE, "w:xz") as tar:
        tar.add(place, "models")


def answers(place: Path, name: str) -> str:
    """Return what a stored model answers, in a line."""
    asked = json.loads((place / INPUTS).read_text())[name]
    path = place / f"{name}.skops"
    if path.exists():
        known = skops.io.get_untrusted_types(file=path)
        model = skops.io.load(path, trusted=known)
        ask = getattr(model, "predict", getattr(model, "transform", None))
        told = ask(np.array(asked["rows"]))
    else:
        columns = pd.Index(asked["columns"], dtype=object)
        frame = pd.DataFrame(asked["rows"], columns=columns)
        told = mlflow.pyfunc.load_model(str(place / name)).predict(frame)
    return " ".join(map(str, pinned.plain(np.asarray(told), 9)))


def unpacked(root: Path) -> Path:
    """Return the folder of the archive's models."""
    unpack(ARCHIVE, root)
    return root / "models"


def every(root: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """Yield what each model answers; an archive that is there is never written anew."""
    if not ARCHIVE.exists():
        write(private_folder(root / "new"), patch)
    place = unpacked(root)
    for name in json.loads((place / INPUTS).read_text()):
        yield name, answers(place, name)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the archive's models."""
    return unpacked(tmp_path_factory.mktemp("saved"))


def test_every_class_of_model_is_kept() -> None:
    """Of each system that keeps one, and each estimator that curvote exports."""
    kept = {one.name for one in all_systems() if one.final_model} - {"auto", "clean"}
    known = {name.partition(" ")[0] for name in pinned.items(KIND)}
    assert known >= kept | {name.partition(" ")[0] for name in ESTIMATORS}


@pytest.mark.parametrize("name", pinned.items(KIND))
def test_a_saved_model_answers_as_it_did(place: Path, name: str) -> None:
    """Loaded by what stands in its file: each class that it names is there."""
    assert answers(place, name) == pinned.recorded(KIND, name)
