"""The scikit-learn classes as a user of scikit-learn expects them, where noise allows.

One table of all of them: who releases rows counts them, and says where noise is from.
"""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.validation import has_fit_parameter

from curvote import (
    DirectClassifier,
    MRMAClassifier,
    PrivateLabelClassifier,
    PrivateLabelRegressor,
    PrivateSearchCV,
    Spectral,
    TransferKernelClassifier,
    UserError,
    encode,
    private_score,
)
from curvote.learning import estimators

MODELS: dict[str, Callable[..., Any]] = {
    "direct": DirectClassifier,
    "mrma": MRMAClassifier,
    "transfer": TransferKernelClassifier,
    "labels": lambda **more: PrivateLabelClassifier("knn", 4.0, **more),
    "regressor": lambda **more: PrivateLabelRegressor("ridge", 4.0, **more),
    "search": lambda **more: PrivateSearchCV(
        PrivateLabelClassifier("knn", 4.0), holdout=0.5, **more
    ),
}
every_model = pytest.mark.parametrize("name", MODELS)
Data = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def data() -> Data:
    """Return 200 rows of two numbers, and labels."""
    x = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    return x, (x[:, 0] > 0).astype(int)


@pytest.fixture
def unsaid(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Collect warnings in a process that has said nothing yet."""
    monkeypatch.setattr(estimators, "_clone_fits", Counter())
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield heard


def told(model: Any, x: np.ndarray) -> np.ndarray:
    """Return what a model says of rows, in full precision where it can."""
    for says in ("decision_function", "predict_proba", "predict"):
        if hasattr(model, says):
            return np.asarray(getattr(model, says)(x))
    raise AssertionError(model)


@every_model
@pytest.mark.parametrize("numpys", [np.random.RandomState, np.random.default_rng])
def test_numpys_generators_are_drawn_from(name: str, numpys: Any, data: Data) -> None:
    """Two fits on one generator differ; the same ones on an equal generator repeat."""
    x, y = data
    made, again = (MODELS[name](random_state=numpys(5)) for _ in "ab")
    first, second = (told(made.fit(x, y), x) for _ in "ab")
    assert np.array_equal(told(again.fit(x, y), x), first)
    assert np.array_equal(told(again.fit(x, y), x), second)
    if name != "search":  # what was chosen may say the same
        assert not np.array_equal(first, second)
    assert made.private_ is False


@every_model
def test_numpys_global_seed_has_no_say(name: str, data: Data) -> None:
    """None is not numpy's global state: that would be a seed of whoever set it."""
    found = []
    for _ in "ab":
        np.random.seed(0)  # noqa: NPY002  # the trap that is tested
        found.append(told(MODELS[name]().fit(*data), data[0]))
    if name != "search":
        assert not np.array_equal(*found)


@every_model
@pytest.mark.parametrize("wrong", [-1, 1.5, "seed", True, 10**30, [1, 2]])
def test_another_random_state_is_refused_before_anything_is_spent(
    name: str, wrong: Any, data: Data
) -> None:
    """With the forms that are taken."""
    model = MODELS[name](random_state=wrong)
    with pytest.raises(UserError, match=r"random_state is .*; give None"):
        model.fit(*data)
    assert getattr(model, "spent_", None) is None


@pytest.mark.parametrize("numpys", [np.random.RandomState, np.random.default_rng])
def test_the_transformer_takes_numpys_generators(numpys: Any, data: Data) -> None:
    """It releases nothing."""
    made = [Spectral(3, 20, 4, numpys(2)).fit_transform(data[0]) for _ in "ab"]
    assert np.array_equal(*made)


@every_model
def test_a_weight_is_refused_in_words_that_say_why(name: str, data: Data) -> None:
    """No signature promises one; None is none, another word is a TypeError."""
    x, y = data
    model = MODELS[name](random_state=0)
    assert not has_fit_parameter(model, "sample_weight")
    with pytest.raises(UserError, match="a budget of its row's own"):
        model.fit(x, y, sample_weight=np.ones(len(y)))
    assert getattr(model, "spent_", None) is None
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        model.fit(x, y, weights=1)
    model.fit(x, y, sample_weight=None)


@every_model
def test_it_counts_how_often_each_row_was_released(name: str, data: Data) -> None:
    """By place: two fits on all rows, one more on the first half of them."""
    x, y = data
    model = MODELS[name]().fit(x, y)
    assert model.releases_.tolist() == [1] * 200
    model.fit(x, y).fit(x[:100], y[:100])
    assert model.releases_.tolist() == [3] * 100 + [2] * 100
    model.predict(x)
    assert model.releases_.max() == 3
    assert not hasattr(clone(model), "releases_") or clone(model).releases_ is None


def test_codes_that_came_are_not_counted(data: Data) -> None:
    """They were released where they were drawn, once."""
    x, y = data
    model = MODELS["labels"]().fit(x, encode(y, epsilon=4.0))
    assert model.releases_ is None
    assert model.spent_ is None


def test_rows_of_a_server_without_noise_are_not_counted(data: Data) -> None:
    """What is public or stays at home has no budget."""
    x, y = data
    server = np.repeat(["a", "b"], 100)
    model = TransferKernelClassifier(epsilon={"a": 1, "b": "own"}).fit(x, y, server)
    assert model.releases_.tolist() == [1] * 100 + [0] * 100


@every_model
def test_cross_validation_says_once_what_it_costs(
    name: str, data: Data, unsaid: list[Any]
) -> None:
    """The first clones that are fitted twice warn; nothing is said again."""
    x, y = data
    cross_val_score(MODELS[name](), x, y, cv=3)
    GridSearchCV(MODELS[name](), {"epsilon": [1]} if name == "direct" else {}, cv=2)
    clone(MODELS[name]()).fit(x, y)
    said = [str(each.message) for each in unsaid]
    assert len(said) == 1
    assert "(k - 1) epsilon" in said[0]
    assert "(g (k - 1) + 1) epsilon" in said[0]


def test_a_study_and_one_object_say_nothing(data: Data, unsaid: list[Any]) -> None:
    """A seed protects nobody anyway, and fits of one object are in its ``spent_``."""
    x, y = data
    cross_val_score(DirectClassifier(random_state=0), x, y, cv=3)
    DirectClassifier().fit(x, y).fit(x, y)
    clone(DirectClassifier()).fit(x, y)
    assert not unsaid


def test_a_clone_in_another_process_knows_that_it_is_one(
    data: Data, unsaid: list[Any]
) -> None:
    """A search with several jobs pickles its clones: a process says it once."""
    original = DirectClassifier()
    for _ in "abc":
        pickle.loads(pickle.dumps(clone(original))).fit(*data)
    assert len(unsaid) == 1


def test_ensembles_seed_their_members_which_say_so(data: Data) -> None:
    """Scikit-learn's bagging sets random_state of what it fits: ``private_`` knows."""
    made = BaggingClassifier(DirectClassifier(), 2).fit(*data)
    assert [each.private_ for each in made.estimators_] == [False, False]


@pytest.mark.parametrize("name", ["direct", "mrma", "transfer"])
def test_wrong_parameters_and_labels_are_named_as_they_were_written(
    name: str, data: Data
) -> None:
    """Bounds of another width, a truth as epsilon, a label that is none."""
    x, y = data
    mixed = np.where(y == 1, "ill", None)
    for wrong, labels, said in (
        ({"bounds": ([0] * 3, [1] * 3)}, y, r"bounds has shape \(3,\).* 2 features"),
        ({"epsilon": True}, y, "epsilon is True"),
        ({}, mixed, "labels of the kinds NoneType, str"),
    ):
        with pytest.raises(UserError, match=said):
            MODELS[name](**wrong).fit(x, labels)
    with pytest.raises(AttributeError, match="absent: scores are read"):
        _ = MODELS[name]().predict_proba


def test_servers_that_are_stated_want_to_be_given(data: Data) -> None:
    """A fit without ``server`` says so, not that a server called so is unknown."""
    for stated in ({"target": "here"}, {"epsilon": {"here": 1, "there": 2}}):
        with pytest.raises(UserError, match=r"given no server: write fit\(X, y, ser"):
            TransferKernelClassifier(**stated).fit(*data)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["labels", "search"])
def test_codes_and_labels_are_not_taken_for_each_other(name: str, data: Data) -> None:
    """A score of codes, and a private score of labels, name the other one."""
    x, y = data
    codes, model = encode(y, epsilon=4.0), MODELS[name]().fit(x, y)
    assert 0 <= model.score(x, y) <= 1
    with pytest.raises(UserError, match=r"write private_score\(model"):
        model.score(x, codes)
    with pytest.raises(UserError, match=r"Plain labels are for model\.score"):
        private_score(model, x, y)
    assert len(repr(codes)) < 80
