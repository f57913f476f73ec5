"""Models in files: what loads, what is refused, and that nothing of it has run."""

import pickle
import tracemalloc
import warnings
import zipfile
from copy import copy
from importlib import import_module
from pathlib import Path

import joblib
import numpy as np
import pytest
import skops.io
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

from curvote.base.errors import UserError
from curvote.systems.utility.method.models import loading

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.random((80, 2)), RNG.integers(0, 4, 80)])
Y = (X[:, 0] + X[:, 1] > 1).astype(int)
MODELS = {
    "logistic": LogisticRegression(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": RandomForestClassifier(5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=5),
    "widened": make_pipeline(PolynomialFeatures(), DecisionTreeClassifier()),
    "network": MLPClassifier((4,), solver="lbfgs", max_iter=20),
}


class Stranger(BaseEstimator):
    """A type that nobody knows to be safe."""


class Bomb:
    """What a pickle can do: write a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def fitted(name):
    """Return a small model of that name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[name].fit(X, Y)


def dumped(model, path):
    """Write a model as skops does and return the path."""
    skops.io.dump(model, path)
    return path


@pytest.mark.parametrize("name", MODELS)
def test_a_skops_file_loads_and_answers_alike(name, tmp_path):
    """Trees too, which skops alone would not trust; nothing is to be said."""
    model = fitted(name)
    loaded = loading.load_model(dumped(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.model.predict(X), model.predict(X))
    assert loaded.notes == ()


def test_a_type_that_is_not_known_is_listed_and_not_loaded(tmp_path):
    """By its full name, and by no other words than its own."""
    path = dumped(Stranger(), tmp_path / "model.skops")
    with pytest.raises(UserError, match=r"test_loading\.Stranger.*Nothing was loaded"):
        loading.load_model(path)


def test_known_types_are_named_one_by_one():
    """No name stands for a module, and none can be called with what a file says."""
    for name in loading.KNOWN_SAFE:
        home, _, own = name.rpartition(".")
        assert isinstance(getattr(import_module(home), own), type)


@pytest.mark.parametrize("suffix", [".pkl", ".pickle", ".joblib"])
def test_a_pickle_is_refused_and_has_not_run(suffix, tmp_path):
    """With the two lines that convert it."""
    path, trace = tmp_path / f"model{suffix}", tmp_path / "trace"
    path.write_bytes(pickle.dumps(Bomb(trace)))
    with pytest.raises(UserError, match="runs whatever code") as said:
        loading.load_model(path)
    assert "  import joblib, skops.io\n  skops.io.dump(joblib.load(" in str(said.value)
    assert not trace.exists()
    loading.load_model(path, trusted=path)
    assert trace.exists()


def test_the_two_lines_convert(tmp_path, monkeypatch):
    """As they stand in the message; what they write loads."""
    monkeypatch.chdir(tmp_path)
    joblib.dump(fitted("logistic"), "model.pkl")
    with pytest.raises(UserError) as said:
        loading.load_model(Path("model.pkl"))
    lines = [line for line in str(said.value).splitlines() if line.startswith("  ")]
    exec("\n".join(line.strip() for line in lines), {})
    assert loading.load_model(Path("model.skops")).model.predict(X[:1]).shape == (1,)


def test_trust_is_in_one_file(tmp_path):
    """Another name, or a skops file, is refused; the very file loads."""
    path = tmp_path / "model.pkl"
    joblib.dump(fitted("logistic"), path)
    with pytest.raises(UserError, match="the one file that it names"):
        loading.load_model(path, trusted=tmp_path / "other.pkl")
    safe = dumped(fitted("logistic"), tmp_path / "model.skops")
    with pytest.raises(UserError, match="leave out --trust-pickle"):
        loading.load_model(safe, trusted=safe)
    assert loading.load_model(path, trusted=path).model.predict(X[:1]).shape == (1,)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("model.skops", None, "no such file"),
        ("model.skops", b"no archive", "no archive at all"),
        ("model.onnx", b"", "a model is a .skops file"),
    ],
)
def test_what_is_no_model_is_said(name, content, said, tmp_path):
    """One message."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=said):
        loading.load_model(tmp_path / name)


def test_an_archive_of_something_else_is_said(tmp_path):
    """An archive without a model."""
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello", "world")
    with pytest.raises(UserError, match="holds no model that loads"):
        loading.load_model(path)


def bent(path, old, new):
    """Return a copy of a skops file with other words in its schema."""
    made = path.with_name(f"bent-{path.name}")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(made, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            replaced = content.replace(old, new) if name == "schema.json" else content
            target.writestr(name, replaced)
    return made


def test_another_version_is_said(tmp_path):
    """Both versions stand in the note; the model still answers."""
    import sklearn

    path = dumped(fitted("pipeline"), tmp_path / "model.skops")
    loaded = loading.load_model(bent(path, sklearn.__version__.encode(), b"1.2.2"))
    (note,) = loaded.notes
    assert "scikit-learn 1.2.2" in note
    assert sklearn.__version__ in note


def _nodes_to(model, field, value):
    """Bend the first node of a tree, as a made file would have it."""
    tree = model.tree_
    state = tree.__getstate__()
    state["nodes"][field][0] = value
    tree.__setstate__(state)


@pytest.mark.parametrize(
    ("field", "value"),
    [("left_child", 0), ("right_child", 10**6), ("feature", 99), ("feature", -7)],
)
def test_a_tree_that_leads_out_of_memory_is_refused(field, value):
    """A circle, a child that is not there, a column that is not there."""
    model = DecisionTreeClassifier(random_state=0).fit(X, Y)
    loading.check_memory(model)
    _nodes_to(model, field, value)
    with pytest.raises(UserError, match="nodes lead nowhere"):
        loading.check_memory(model)


def test_a_tree_inside_an_ensemble_is_found():
    """In a pipeline, in a forest; and the histogram kind, with its categories."""
    forest = RandomForestClassifier(3, random_state=0).fit(X, Y)
    _nodes_to(forest.estimators_[2], "feature", 3)
    with pytest.raises(UserError, match="nodes lead nowhere"):
        loading.check_memory(make_pipeline(StandardScaler(), forest))
    plain = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2).fit(X, Y)
    loading.check_memory(plain)
    plain._predictors[1][0].nodes["left"][0] = 1 << 20
    with pytest.raises(UserError, match="nodes lead nowhere"):
        loading.check_memory(plain)
    known = HistGradientBoostingClassifier(
        max_iter=3, min_samples_leaf=2, categorical_features=[2]
    ).fit(X, X[:, 2] % 2)
    loading.check_memory(known)
    known._bin_mapper.is_categorical_[:] = False
    with pytest.raises(UserError, match="nodes lead nowhere"):
        loading.check_memory(known)


MACHINES = {
    "two classes": SVC().fit(X, Y),
    "three classes": SVC().fit(X, X[:, 2] % 3),
    "nu": NuSVC().fit(X, X[:, 2] % 3),
    "precomputed": SVC(kernel="precomputed").fit(X @ X.T, X[:, 2] % 3),
    "regression": SVR().fit(X, Y),
    "one class": OneClassSVM().fit(X),
}
ARRAYS = ("support_vectors_", "_dual_coef_", "dual_coef_", "_intercept_", "_n_support")


@pytest.mark.parametrize("name", MACHINES)
def test_an_honest_machine_loads_and_answers_alike(name, tmp_path):
    """Of every kind that libsvm knows."""
    machine = MACHINES[name]
    path = tmp_path / "m.skops"
    skops.io.dump(machine, path)
    asked = X @ X.T if name == "precomputed" else X
    assert (
        loading.load_model(path).model.predict(asked) == machine.predict(asked)
    ).all()


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("array", ARRAYS)
def test_a_machine_whose_arrays_were_cut_is_refused(name, array):
    """Each of them, along each side: libsvm would read on behind its end."""
    whole = getattr(MACHINES[name], array)
    for axis in range(whole.ndim):
        if not whole.shape[axis]:
            continue  # a precomputed kernel needs no vectors
        machine = copy(MACHINES[name])
        cut = whole[:, :-1] if axis else whole[:-1]
        setattr(machine, array, cut)
        with pytest.raises(UserError, match="support vectors that do not fit"):
            loading.check_memory(make_pipeline(StandardScaler(), machine))


def test_what_else_is_read_without_looking_is_refused():
    """Classes beyond their number, a stage too wide, categories and centres of none."""
    near = KNeighborsClassifier(algorithm="brute").fit(X, Y)
    wide = GradientBoostingClassifier(n_estimators=3).fit(X, Y)
    binned = HistGradientBoostingClassifier(
        max_iter=2, min_samples_leaf=2, categorical_features=[2]
    ).fit(X, X[:, 2] % 2)
    means = KMeans(2, n_init=1, random_state=0).fit(X)
    precomputed = copy(MACHINES["precomputed"])
    for honest in (near, wide, binned, means, precomputed):
        loading.check_memory(honest)
    near._y[3] = 7
    wide.estimators_ = np.column_stack([wide.estimators_, wide.estimators_])
    (column,) = np.flatnonzero(binned._bin_mapper.is_categorical_)
    binned._bin_mapper.bin_thresholds_[column][-1] = 1e9
    means.cluster_centers_ = means.cluster_centers_[:, :2].copy()
    precomputed.support_ = precomputed.support_ + 80
    for bent_ in (near, wide, binned, means, precomputed):
        with pytest.raises(UserError, match="made to do harm"):
            loading.check_memory(bent_)


STRANGE = {
    "kd_tree": KNeighborsClassifier(algorithm="kd_tree").fit(X, Y),
    "ball_tree": KNeighborsClassifier(algorithm="ball_tree").fit(X, Y),
    "splines": make_pipeline(SplineTransformer(), LogisticRegression()).fit(X, Y),
    "sparse": SVC().fit(csr_matrix(X), Y),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_nobody_looks_through_is_not_loaded(name, tmp_path):
    """Other trees, splines, sparse machines: they are no known type."""
    path = tmp_path / "m.skops"
    skops.io.dump(STRANGE[name], path)
    with pytest.raises(UserError, match="not known to be safe"):
        loading.load_model(path)


def test_a_bomb_is_refused_by_its_directory(tmp_path):
    """Before anything of it is unpacked: 400 kB of zeros were .9 GB of memory."""
    path = tmp_path / "m.skops"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("schema.json", "w") as stream,
    ):
        for _ in range(100):
            stream.write(bytes(2**20))
    tracemalloc.start()
    with pytest.raises(UserError, match="would unpack to 105 MB"):
        loading.load_model(path)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()
