"""The scikit-learn classes as a user of scikit-learn expects them, where noise allows.

One table of all of them: who releases rows counts them, and says where noise is from.
"""

import pickle
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.utils.estimator_checks import check_estimator
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
from curvote.base.privacy import Budget
from curvote.estimators import transfer
from curvote.learning import estimators
from curvote.messages.arms import LABEL_SHARES
from curvote.systems.common import models
from curvote.systems.labels.method import classifier

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
    """None is not numpy's global state: only a stated seed repeats."""
    found, seeded = [], []
    for _ in "ab":
        np.random.seed(0)  # noqa: NPY002  # the trap that is tested
        found.append(told(MODELS[name]().fit(*data), data[0]))
        seeded.append(told(MODELS[name](random_state=4).fit(*data), data[0]))
    assert np.array_equal(*seeded)
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


KINDS: Any = pytest.mark.parametrize(
    "kind", [DirectClassifier, MRMAClassifier, TransferKernelClassifier]
)
PRESSURE = ([300.0, -5.0], [700.0, 5.0])


def table(n: int = 400) -> tuple[Any, Any]:
    """Return two features, one in [300, 700], and labels that the first one tells."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return np.column_stack(
        [380 + 200 * y + rng.normal(0, 20, n), rng.normal(size=n)]
    ), y


@KINDS
def test_who_fits_beyond_the_bounds_hears_which_columns_and_what_to_state(
    kind: Any,
) -> None:
    """Default bounds clip all of a column in [300, 700]: half of the answers are right.

    The warning points to the line that called `fit`; bounds that hold say nothing.
    """
    X, y = table()
    with pytest.warns(UserWarning, match=r"column 0 100.0 %|x0 100.0 %") as heard:
        kind(epsilon=8, random_state=0).fit(X, y)
    (told,) = heard
    assert "bounds=(lower, upper)" in str(told.message)
    assert "without noise" in str(told.message)
    assert told.filename == __file__
    right = kind(epsilon=8, bounds=PRESSURE, random_state=0).fit(X, y)
    assert right.score(X, y) > 0.9


@KINDS
def test_a_few_values_outside_are_no_news(kind: Any) -> None:
    """As in `curvote check`: from one value in a hundred of a column on."""
    X, y = table()
    X[:4, 1] = 6.0
    kind(epsilon=8, bounds=PRESSURE).fit(X, y)
    X[4, 1] = -6.0
    with pytest.warns(UserWarning, match=r"\((column 1|x1) 1.2 %\)"):
        kind(epsilon=8, bounds=PRESSURE).fit(X, y)


@pytest.mark.parametrize("kind", [DirectClassifier, MRMAClassifier])
def test_curves_far_from_the_centre_are_said(kind: Any) -> None:
    """A tanh, or a direction, of coefficients around 500 tells no two curves apart."""
    y = np.arange(200) % 2
    X = 500 + np.outer(10.0 * y, np.linspace(0, 1, 30))
    X += np.random.default_rng(0).normal(size=X.shape)
    given = {"basis": "bspline", "coordinates": "coefficients", "epsilon": 8}
    given = given if kind is DirectClassifier else {"basis": "bspline", "epsilon": 8}
    with pytest.warns(UserWarning, match=r"coefficient 0 100.0 %.*State centre"):
        kind(**given).fit(X, y)
    kind(**given, centre=500, scale=10).fit(X, y)


def test_labels_outside_are_said() -> None:
    """A regressor clips the labels that it noises."""
    X = np.linspace(0, 1, 100)[:, None]
    with pytest.warns(UserWarning, match=r"\(y 10.0 %\)"):
        PrivateLabelRegressor(bounds=(0, 100), random_state=0).fit(X, 111 * X[:, 0])


@KINDS
def test_what_is_saved_knows_nothing_of_the_shares(kind: Any) -> None:
    """A model of clipped data is, to the byte, that of data which were clipped before.

    Nothing that is released, printed or pickled holds a number that only the warning
    has; as an error it comes before a row has spent anything.
    """
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        far = kind(epsilon=1, random_state=0).fit(X, y)
    near = kind(epsilon=1, random_state=0).fit(np.clip(X, -1, 1), y)
    assert pickle.dumps(far) == pickle.dumps(near)
    other = kind(epsilon=1, random_state=0).fit(np.clip(X, -1, 1) / 2, y)
    assert far.task_.digest() == other.task_.digest()
    assert repr(far) == repr(near)
    refused = kind(epsilon=1)
    with pytest.raises(UserWarning, match="beyond"):
        refused.fit(X, y)
    assert not hasattr(refused, "spent_")


CLASSES = [DirectClassifier, MRMAClassifier]
every_class = pytest.mark.parametrize("kind", CLASSES)


@every_class
def test_each_fit_draws_anew_and_adds(kind: type[Any], data: Data) -> None:
    """Three calls of fit spend three budgets, also when epsilon changes between."""
    model = kind(epsilon=1).fit(*data)
    assert model.spent_ == Budget(1)
    before = model.coef_
    assert not np.array_equal(model.fit(*data).coef_, before)
    assert model.spent_ == Budget(2)
    assert model.set_params(epsilon=0.5).fit(*data).spent_ == Budget(2.5)
    assert pickle.loads(pickle.dumps(model)).spent_ == Budget(2.5)


@every_class
def test_a_seed_protects_nobody_for_good(kind: type[Any], data: Data) -> None:
    """Fresh noise of a later fit does not take back what known noise showed."""
    model = kind(random_state=3).fit(*data)
    assert not model.private_
    assert not model.set_params(random_state=None).fit(*data).private_
    fresh = kind().fit(*data)
    assert fresh.private_
    assert not fresh.set_params(random_state=0).fit(*data).private_


@every_class
def test_predicting_spends_nothing_and_a_clone_starts_anew(
    kind: type[Any], data: Data
) -> None:
    """A clone has parameters only, as everywhere in scikit-learn."""
    model = kind().fit(*data)
    model.predict(data[0])
    model.score(*data)
    assert model.spent_ == Budget(1)
    assert not hasattr(clone(model), "spent_")
    assert clone(model).fit(*data).spent_ == Budget(1)


@every_class
@pytest.mark.parametrize("wrong", [{"epsilon": 0}, {"rescale": "tan"}])
def test_what_is_refused_spends_nothing(
    kind: type[Any], wrong: dict[str, Any], data: Data
) -> None:
    """A parameter out of range leaves the count as it was."""
    model = kind().fit(*data)
    with pytest.raises(UserError):
        model.set_params(**wrong).fit(*data)
    assert model.spent_ == Budget(1)


@every_class
def test_cross_validation_spends_what_the_notes_say(
    kind: type[Any], data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(k - 1) fits for a row, g (k - 1) + 1 in a search: counted row by row."""
    x, y = data
    rows: list[np.ndarray] = []
    fit = kind.fit

    def counting(self: Any, given: np.ndarray, labels: np.ndarray) -> Any:
        rows.append(given[:, 0])
        return fit(self, given, labels)

    monkeypatch.setattr(kind, "fit", counting)

    def asked() -> set[int]:
        every = np.concatenate(rows)
        rows.clear()
        return {int((every == value).sum()) for value in x[:, 0]}

    cross_validate(kind(), x, y, cv=5)
    assert asked() == {4}
    search = GridSearchCV(kind(), {"epsilon": [1, 2, 3]}, cv=4).fit(x, y)
    assert asked() == {3 * 3 + 1}
    # What one object knows of is its own fit.
    assert search.best_estimator_.spent_ == Budget(search.best_params_["epsilon"])


SURE = PrivateLabelClassifier("knn", 12.0)
CHECKED: dict[str, Any] = {
    "mrma": MRMAClassifier(random_state=0),
    "labels": PrivateLabelClassifier(random_state=0),
    "labels-spectral": PrivateLabelClassifier("spectral", random_state=0),
    "labels-foreign": PrivateLabelClassifier(Ridge(), random_state=0),
    "labels-votes": PrivateLabelClassifier("ridge", calibrate=False, random_state=0),
    "labels-lp_2st": PrivateLabelClassifier("knn", encoder="lp_2st", random_state=0),
    # The checks have 10 records at times.
    "search": PrivateSearchCV(
        SURE, {"estimator": ["ridge", "knn"]}, holdout=0.5, random_state=0
    ),
    "transformer": Spectral(m=2, anchors=5, neighbours=3, random_state=0),
}
CHECKED |= {
    f"direct-{arm}-{seed}": DirectClassifier(arm=arm, random_state=seed)
    for arm, seed in product(("auto", *LABEL_SHARES), (0, None))
}
CHECKED |= {
    f"transfer-{form}": TransferKernelClassifier(release=form, random_state=0)
    for form in ("auto", "cells", "moments", "kernel", "counts")
}
CHECKED |= {
    f"regressor-{name}": PrivateLabelRegressor(randomizer=name, random_state=0)
    for name in ("piecewise", "rr_on_bins")
}


@pytest.mark.parametrize("name", CHECKED)
@pytest.mark.filterwarnings("ignore:values beyond what is stated")
def test_scikit_learn_finds_nothing_to_complain_about(name: str) -> None:
    """All of its checks, for one that need not score well and may draw at random."""
    results = check_estimator(CHECKED[name], on_fail=None, on_skip=None)
    assert not [r["check_name"] for r in results if r["status"] == "failed"]
    least = 50 if name.startswith(("transfer", "regressor")) else 40
    assert sum(r["status"] == "passed" for r in results) > least


LAST_STEPS: dict[str, tuple[Any, str]] = {
    "direct": (models, "combine_lines"),
    "mrma": (MRMAClassifier, "_fit_weak"),
    "transfer": (transfer, "combine"),
    "labels": (classifier, "left_out_votes"),
}


@pytest.mark.parametrize("name", LAST_STEPS)
def test_a_failure_after_the_draw_has_counted(
    name: str, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever saw the messages saw them, though no classifier came of it."""

    def fails(*_: object) -> None:
        raise RuntimeError("the server is gone")

    def spent() -> float:
        paid = model.spent_["server"] if name == "transfer" else model.spent_
        return float(paid.epsilon)

    model = MODELS[name]()
    with monkeypatch.context() as patch:
        patch.setattr(*LAST_STEPS[name], fails)
        with pytest.raises(RuntimeError, match="gone"):
            model.fit(*data)
    assert spent() == model.epsilon
    with pytest.raises(NotFittedError):
        model.predict(data[0])
    model.fit(*data)
    assert spent() == 2 * model.epsilon


@pytest.mark.parametrize(
    ("kind", "given", "taken"),
    [
        (DirectClassifier, {"basis": "bspline", "n_basis": 4}, "standard"),
        (DirectClassifier, {}, "min_max"),
        (DirectClassifier, {"rescale": "tanh"}, "tanh"),
        (MRMAClassifier, {"basis": "bspline", "n_basis": 4}, "tanh"),
        (MRMAClassifier, {}, "min_max"),
        (MRMAClassifier, {"rescale": "max_abs"}, "max_abs"),
    ],
)
def test_the_rescaling_follows_the_basis(
    kind: Any, given: dict[str, Any], taken: str
) -> None:
    """Unless it is named; `DirectClassifier` judges z."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (100, 9)), rng.integers(0, 2, 100)
    encoding = kind(random_state=0, **given).fit(x, y).task_.encoding
    assert encoding.rescale == taken
    assert kind is MRMAClassifier or encoding.feature_map == "rescaled"
