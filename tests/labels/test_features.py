"""Public features: of images and files, chosen by training codes, the same for all."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from skimage.transform import warp

from curvote.base.errors import UserError
from curvote.data.public.images import ImageParameters, Images, ImageSet
from curvote.labels import ImageFeatures, PrivateLabelClassifier, encode
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import RunView, final_views
from curvote.systems.labels import stages
from curvote.systems.labels.learners.knn import KNN
from curvote.systems.labels.method.features import FeatureChoice
from tests import plain
from tests.public_names import described, sections

N, SIDE = 240, 8


class Bars(ImageSet):
    """Made-up images without a file: a bar upright or lying, or a cross."""

    class Parameters(ImageParameters):
        """Settings of ``source:``."""

        name: str = "bars"
        classes: tuple[str, ...] = ("0", "1", "2")

    title, class_names = "Bars", ("0", "1", "2")
    side, lower, upper, trained, why = SIDE, -1, 1, N, "made up"
    labels = np.arange(N) % 3

    def names(self, *_: Any) -> tuple[str, ...]:
        return ()

    def counts(self, *_: Any) -> None:
        return None

    def read(self, parameters: Any, part: str, paths: Any) -> Images:
        rng = np.random.default_rng(part == "test")
        pixels = rng.uniform(-1, -0.8, (N, SIDE, SIDE))
        for image, kind in zip(pixels, np.arange(N) % 3, strict=True):
            at = rng.integers(2, SIDE - 2)
            image[1:-1, at] += 1.5 * (kind != 1)
            image[at, 1:-1] += 1.5 * (kind != 0)
        return pixels.clip(-1, 1).reshape(N, -1), self.labels


BARS, TURNED = Bars(), Bars()
TURNED.labels = (np.arange(N) // 5) % 3
STUDY: dict[str, Any] = {
    "clients": {"train": N, "test": N},
    "protocol": "labels",
    "learners": ["auto"],
    "epsilon": [4],
    "replicates": 1,
}


def study(root: Path, source: str = "BARS", **public: Any) -> RunView:
    """Return the only cell of a study that has run in a folder."""
    where = {"name": f"{__name__}:{source}", "split": "published"}
    project = plain.write(root, tiny=STUDY | {"source": where, "public": public})
    return final_views(project, plain.run(project))[0]


def bar(lean: float) -> np.ndarray:
    """Return an image (1, 400) with a bar that leans by so many columns a row."""
    image = np.zeros((20, 20))
    image[4:16, 9:11] = 1
    matrix = np.array([[1, lean, -9.5 * lean], [0, 1, 0], [0, 0, 1]])
    return np.asarray(warp(image, matrix, order=1)).reshape(1, -1)


def joint_moment(image: np.ndarray) -> float:
    """Return how rows and columns of the ink (1, 400) vary together."""
    return float((np.arange(20) - 9.5) @ image.reshape(20, 20) @ (np.arange(20) - 9.5))


def test_deskew_takes_out_a_shear_and_leaves_the_rest() -> None:
    """All planes alike; what has no ink or no lean is as it was."""
    made = ImageFeatures("pixels", deskew=True)
    for lean in (-0.5, 0.4):
        upright = made.fit_transform(bar(lean))
        assert abs(joint_moment(upright)) < 0.03 * abs(joint_moment(bar(lean)))
        coloured = made.fit_transform(np.hstack([k * bar(lean) for k in (1, 2, 3)]))
        assert coloured == pytest.approx(np.hstack([k * upright for k in (1, 2, 3)]))
    for still in (bar(0), np.zeros((1, 400)), np.full((1, 400), 0.7)):
        still.flags.writeable = False  # as a data frame's
        assert made.fit_transform(still) == pytest.approx(still, abs=1e-9)
    left = {key for key in vars(made) if key.endswith("_")}
    assert left <= described(sections(ImageFeatures)["Attributes"])


@pytest.mark.parametrize(("side", "planes"), [(4, 1), (7, 1), (16, 3), (28, 1)])
def test_gradients_and_wavelets_are_those_of_the_papers(side: int, planes: int) -> None:
    """Brightness and contrast leave gradients; a negative leaves the moduli."""
    x = np.random.default_rng(0).uniform(0, 255, (6, planes * side**2))
    made = ImageFeatures("hog").fit(x)
    cells = side // max(2, (side + 4) // 8)
    assert made.transform(x).shape == (6, (cells - 1) ** 2 * 4 * 9)
    assert made.transform(0.01 * x - 3) == pytest.approx(made.transform(x), abs=1e-3)
    made.set_params(kind="wavelet")
    bands, negative = (made.transform(s * x).reshape(6, planes, 7, -1) for s in (1, -1))
    assert bands.shape[-1] == (-(-side // 4)) ** 2
    assert negative[:, :, 1:] == pytest.approx(bands[:, :, 1:])
    assert negative[:, :, 0] == pytest.approx(-bands[:, :, 0])
    for given, width in (({"kind": "sift"}, 64), ({"deskew": 1}, 64), ({}, 65)):
        with pytest.raises(UserError, match=r"kind|deskew|65 pixels"):
            ImageFeatures(**given).fit(np.zeros((2, width)))


def test_without_the_extra_it_says_what_to_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No traceback of an import."""
    for name in ("pywt", "skimage.feature", "skimage.transform"):
        monkeypatch.setitem(sys.modules, name, None)
    for kind in ("hog", "wavelet", "pixels"):
        made = ImageFeatures(kind, deskew=kind == "pixels").fit(np.ones((1, 64)))
        with pytest.raises(UserError, match=r"pip install 'curvote\[images\]'"):
            made.transform(np.ones((1, 64)))


@pytest.mark.parametrize("informative", [0, 1, 2])
def test_codes_choose_the_features_that_tell_classes(informative: int) -> None:
    """Of equals the first; the model of the choice alone is the same."""
    y, parts = np.arange(900) % 3, np.random.default_rng(0).normal(size=(900, 3, 2))
    parts[:, informative] += 4 * np.eye(3)[y][:, :2]
    x, codes = parts.reshape(900, 6), encode(y, epsilon=2.0, random_state=1)
    choice = FeatureChoice(("a", "b", "c"), [KNN(k=30)] * 3)
    model = PrivateLabelClassifier(choice, 2.0, random_state=0).fit(x, codes)
    assert model.learner_.chosen_["features"] == "abc"[informative]
    again = PrivateLabelClassifier(model.learner_.fixed(), 2.0, random_state=0)
    assert np.array_equal(again.fit(x, codes).predict(x), model.predict(x))
    model.fit(np.tile(parts[:, informative], 3), codes)
    assert model.learner_.chosen_["features"] == "a"


def test_codes_that_score_do_not_choose() -> None:
    """Held-out labels follow b without a flaw, the others a: all codes would take b."""
    rng = np.random.default_rng(0)
    rng.integers(2**31)
    held = np.isin(np.arange(600), rng.permutation(600)[:300])
    x = np.random.default_rng(1).normal(size=(600, 2))
    flaw = np.arange(600) % 6 == 0
    y = np.where(held, x[:, 1] > 0, (x[:, 0] > 0) ^ flaw).astype(int)
    codes = encode(y, classes=[0, 1], epsilon=4.0, random_state=1)
    choice = FeatureChoice(("a", "b"), [KNN(k=20)] * 2)
    every = PrivateLabelClassifier(choice, 4.0, random_state=0).fit(x, codes)
    assert every.learner_.chosen_["features"] == "b"
    params = {"labels.holdout": 0.5, "labels.decide": "accuracy"}
    given = choice, params | {"labels.calibrate": True}, np.random.default_rng(0)
    model, _ = stages.fit_with_holdout(stages.Records(x, codes, x[:0]), *given)
    assert model.learner_.chosen_["features"] == "a"


@pytest.mark.parametrize(
    "public",
    [
        {"features": "hog", "deskew": True, "size": 5},
        {"features": "auto", "size": 4},
        {"features": "wavelet", "scale": "standard"},
    ],
)
def test_features_know_no_label_and_the_model_takes_raw_images(
    tmp_path: Path, public: dict[str, Any]
) -> None:
    """Other labels, other codes: the same bytes; a stored model says what was said."""
    pair = [study(tmp_path / name, name, **public) for name in ("BARS", "TURNED")]
    for table, column in (("features", "values"), ("reduction", "model")):
        one, two = (view.columns("features", table)[column] for view in pair)
        assert np.array_equal(one, two)
    assert np.array_equal(*(view.columns("graph", "graph")["model"] for view in pair))
    codes = [view.columns("privatize", "codes")["code"] for view in pair]
    assert not np.array_equal(*codes)
    view = pair[0]
    model, said = view.system.final_model(view), view.columns("train", "said")
    clients = view.columns("ingest", "clients")
    rows = stages.rows_by_name(clients["client_id"].astype(str), said["record"])
    assert [*model.predict(clients["curve"][rows])] == [*map(str, said["place"])]
    assert np.mean(said["place"] == clients["label"][rows]) > 0.9
    assert model.libraries == ("scikit-image", "PyWavelets")
    # What MLflow trusts to be loaded.
    kinds = skops.io.get_untrusted_types(data=skops.io.dumps(model))
    assert {kind.partition(".")[0] for kind in kinds} <= {"curvote", "sklearn"}


VECTORS = pd.DataFrame(np.eye(3)[np.arange(2 * N) % 3] + 0.1, columns=[*"uvw"])
VECTORS["record"] = [*map(str, range(2 * N))]


def test_vectors_of_a_file_count_by_content(tmp_path: Path) -> None:
    """Both forms; another content trains anew and asks nobody, the order is nothing."""
    file, project = tmp_path / "vectors.parquet", Project(tmp_path)
    VECTORS.sample(frac=1, random_state=0).to_parquet(file)
    view = study(tmp_path, features="embedding:vectors.parquet", size=2)
    labels = view.columns("ingest", "clients")["label"].astype(str)
    said = view.system.final_model(view).predict(VECTORS[["w", "u", "v"]])
    assert np.mean(said == labels) > 0.95
    VECTORS.assign(u=0.5).to_parquet(file)
    actions = {step.stage.name: step.action for step in plain.plan(project).steps}
    expected = dict.fromkeys(("ingest", "privatize"), "reuse")
    assert actions == dict.fromkeys(actions, "run") | expected
    np.save(tmp_path / "vectors.npy", VECTORS[[*"uvw"]].to_numpy())
    named = "public={features: embedding:vectors.npy}"
    (again,) = final_views(project, plain.run(project, "tiny", named))
    table = again.columns("features", "features")
    assert np.array_equal(table["values"], VECTORS[[*"uvw"]])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (VECTORS.drop(columns="record"), "no column 'record'"),
        (VECTORS.iloc[3:], "no vector of 3 records: 0, 1, 2"),
        (VECTORS.assign(u="x"), "u: no finite number"),
        (VECTORS.assign(u=np.nan), "u: no finite number"),
        (VECTORS.assign(record="7"), "stood there before"),
        (np.ones((4, 2)), "4 rows, but 480 records"),
        (np.ones((4, 2, 2)), "no table of numbers"),
        (None, "no file v.parquet"),
    ],
)
def test_a_file_of_vectors_is_checked(tmp_path: Path, table: Any, words: str) -> None:
    """Rows, names and numbers: a UserError before anything is learnt."""
    if isinstance(table, pd.DataFrame):
        table.to_parquet(tmp_path / "v.parquet")
    elif table is not None:
        np.save(tmp_path / "v.npy", table)
    name = "v.npy" if isinstance(table, np.ndarray) else "v.parquet"
    with pytest.raises(UserError, match=words):
        study(tmp_path, features=f"embedding:{name}")


def test_a_file_of_vectors_lies_in_the_project(tmp_path: Path) -> None:
    """One elsewhere is refused as one that is not there, by whatever path."""
    np.save(tmp_path / "v.npy", np.ones((480, 2)))
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "link.npy").symlink_to(tmp_path / "v.npy")
    for name in ("../v.npy", str(tmp_path / "v.npy"), "link.npy"):
        with pytest.raises(UserError, match="no file"):
            study(inner, features=f"embedding:{name}")


@pytest.mark.parametrize(
    ("source", "public", "words"),
    [
        ("phonemes", "features: hog", "hog is for images"),
        ("employee", "features: wavelet", "wavelet is for images"),
        ("circle", "features: auto, size: 2", "auto is for images"),
        ("circle", "deskew: true", "deskew: it is for images"),
        (
            "zip",
            "features: 'embedding:v.npy', deskew: true",
            "deskew: it is for images",
        ),
        ("zip", "features: auto", "say how many components"),
        ("zip", "size: 3", "reduce: pca or features only"),
        ("zip", "features: hogs", "Did you mean 'hog'"),
        ("zip", "features: 'embedding:v.csv'", "embedding"),
    ],
)
def test_features_that_cannot_be_are_refused_by_name(
    tmp_path: Path, source: str, public: str, words: str
) -> None:
    """Before anything runs, in plain words."""
    clients = {"train": 100, "test": 50}
    values = STUDY | {"source": {"name": source}, "clients": clients}
    file = PipelinesFile(plain.write(tmp_path, tiny=values))
    with pytest.raises(UserError, match=words):
        file.configure_pipeline("tiny", [f"public={{{public}}}"])
