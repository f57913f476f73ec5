"""Transfer as a scikit-learn class: as scikit-learn and the library want it."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_validate

from curvote import Budget, SeededEntropy, TransferKernelClassifier, UserError
from curvote.systems.transfer.method.model import combine
from curvote.systems.transfer.method.release import release
from curvote.systems.transfer.method.task import Task

FORMS = ["cells", "moments", "kernel"]
Data = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def data() -> Data:
    """Return 900 records of two numbers, labels and three servers."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (900, 2))
    label = np.where(x @ [2, 1] + rng.normal(size=900) / 2 > 0, "ill", "well")
    return x, label, rng.choice(["a", "b", "c"], p=[0.2, 0.3, 0.5], size=900)


@pytest.mark.parametrize("form", FORMS)
def test_it_learns_as_far_as_the_budget_goes(form: str, data: Data) -> None:
    """At epsilon 5 near what can be had; at .001 next to nothing."""
    x, label, server = data
    made = TransferKernelClassifier(release=form, target="a", random_state=1)
    rich = clone(made).set_params(epsilon=5).fit(x, label, server)
    poor = [
        clone(made).set_params(epsilon=0.001, random_state=seed).fit(x, label, server)
        for seed in range(6)
    ]
    assert rich.score(x, label) > 0.83
    assert np.mean([one.score(x, label) for one in poor]) < 0.7


@pytest.mark.parametrize("form", FORMS)
def test_it_is_release_and_combine(form: str, data: Data) -> None:
    """The same numbers as the library's own, step by step."""
    x, label, server = data
    epsilon = {"a": 1.0, "b": 2.0, "c": "public"}
    made = TransferKernelClassifier(
        epsilon=epsilon, release=form, target="b", bounds=(-1, [1, 2]), random_state=7
    ).fit(x, label, server)
    task = Task(
        features=[("x0", -1, 1), ("x1", -1, 2)],
        classes=("ill", "well"),
        servers=epsilon,
        release=form,
        params=made.task_.params,
    )
    assert task.digest() == made.task_.digest()
    told = []
    for name in "abc":
        own = server == name
        told.append(release(task, name, x[own], label[own], SeededEntropy(7)))
    model = combine(task, told, target="b")
    assert np.array_equal(model.predict(x), made.predict(x))
    assert np.array_equal(model.decision_function(x), made.decision_function(x))
    assert [each.sigma > 0 for each in made.sent_] == [True, True, False]


def test_the_order_of_rows_does_not_matter(data: Data) -> None:
    """Neither does that of the columns' names, nor who stands first."""
    x, label, server = data
    frame = pd.DataFrame(x, columns=["dose", "age"])
    order = np.random.default_rng(1).permutation(len(x))
    made = TransferKernelClassifier(random_state=3)
    one = clone(made).fit(frame, label, server)
    other = clone(made).fit(frame.iloc[order], label[order], server[order])
    assert one.target_ == other.target_ == "a"
    assert [each.name for each in one.task_.features] == ["dose", "age"]
    assert np.array_equal(one.predict(frame), other.predict(frame))


@pytest.mark.parametrize("kind", [str, int, bool, float])
def test_labels_and_servers_are_of_any_type(kind: type[Any], data: Data) -> None:
    """Predictions come back in the labels' own."""
    x, label, server = data
    given = label if kind is str else (label == "ill").astype(kind)
    codes = np.searchsorted(["a", "b", "c"], server)
    made = TransferKernelClassifier(
        epsilon={0: 4, 1: 4.0, 2: "own"}, target=2, random_state=0
    ).fit(x, given, codes)
    assert made.predict(x).dtype == given.dtype
    assert made.score(x, given) > 0.8
    assert made.target_ == "2"
    assert made.model_.inside


def test_five_classes_and_a_class_that_a_server_lacks() -> None:
    """Scores have a column a class; servers need not know all of them."""
    rng = np.random.default_rng(2)
    centres = rng.uniform(-0.7, 0.7, (5, 3))
    label = rng.integers(0, 5, 3000)
    x = centres[label] + rng.normal(size=(3000, 3)) / 10
    server = np.where(rng.random(3000) < 0.5, "near", "far")
    x, label, server = (v[(server == "near") | (label < 3)] for v in (x, label, server))
    made = TransferKernelClassifier(
        epsilon=4, release="cells", target="near", random_state=0
    ).fit(x, label, server)
    assert made.decision_function(x).shape == (len(x), 5)
    assert made.score(x[server == "near"], label[server == "near"]) > 0.8


@pytest.mark.parametrize("form", ["auto", *FORMS])
def test_small_and_dull_tables_are_taken(form: str) -> None:
    """A server with one record, and so one class; a feature that never moves."""
    x = np.zeros((40, 1))
    label = (np.arange(40) > 20).astype(int)
    server = np.array(["one"] + ["some"] * 39)
    made = TransferKernelClassifier(release=form, random_state=0)
    with pytest.raises(UserError, match=r"server one: .*state a delta"):
        made.fit(x, label, server)
    fitted = made.set_params(delta=1e-5).fit(x, label, server)
    assert [each.n for each in fitted.sent_] == [1, 39]
    assert np.isfinite(fitted.decision_function(x)).all()


def test_each_fit_draws_anew_and_adds(data: Data) -> None:
    """Each server's budgets add up; records without noise spend nothing."""
    x, label, server = data
    made = TransferKernelClassifier(
        epsilon={"a": 1, "b": 2, "c": "public"}, delta={"a": 1e-6, "b": None}
    ).fit(x, label, server)
    first, n = made.sent_[0].values, int((server == "b").sum())
    assert made.spent_ == {"a": Budget(1, 1e-6), "b": Budget(2, n**-2)}
    made.fit(x, label, server)
    assert not np.array_equal(made.sent_[0].values, first)
    assert made.spent_["a"] == Budget(2, 2e-6)
    only = made.set_params(epsilon=1, delta=None).fit(x, label)
    assert only.spent_.keys() == {"a", "b", "server"}
    assert made.private_
    assert not made.set_params(random_state=0).fit(x, label).private_
    assert not pickle.loads(pickle.dumps(made)).set_params(random_state=None).private_
    assert not hasattr(clone(made), "spent_")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"epsilon": 0}, "server a: epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": "owm"}, "public or own"),
        ({"epsilon": {"a": 1, "b": 1}}, "epsilon is stated for a, b; server c"),
        ({"epsilon": {"a": 1, "b": 1, "c": -1}}, "server c: epsilon"),
        ({"delta": {"a": 1e-6}}, "server b has none"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 0.01}, "delta"),
        ({"target": "d"}, "target"),
        ({"release": "cell"}, "Did you mean 'cells'"),
        ({"release": "printed"}, "release"),
        ({"weights": "align"}, "aligned"),
        ({"weights": "align", "release": "kernel"}, "aligned"),
        ({"decide": "majority"}, "decide"),
        ({"bounds": (1, -1)}, "x0"),
        ({"bounds": ([0, 0, 0], 1)}, "2 features"),
        ({"bounds": (0, float("inf"))}, "bounds"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_what_is_refused_is_said_and_spends_nothing(
    data: Data, parameters: dict[str, object], said: str
) -> None:
    """A UserError, which is a ValueError, that names the parameter."""
    made = TransferKernelClassifier(**parameters)
    with pytest.raises(UserError, match=said):
        made.fit(*data)
    assert not hasattr(made, "spent_")


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (["a", "b"], "server has shape"),
        (["a"] * 899 + [None], "row 899"),
        ([float("nan")] * 900, "row 0"),
    ],
)
def test_wrong_names_of_servers_are_refused(
    data: Data, server: list[Any], said: str
) -> None:
    """One for each row, none missing."""
    with pytest.raises(UserError, match=said):
        TransferKernelClassifier().fit(*data[:2], server)


def test_servers_are_routed_through_cross_validation(data: Data) -> None:
    """Scikit-learn's metadata routing hands each fold its rows' servers."""
    x, label, server = data
    with sklearn.config_context(enable_metadata_routing=True):
        made = TransferKernelClassifier(
            epsilon={"a": 3, "b": 4, "c": 5}, random_state=0
        ).set_fit_request(server=True)
        found = cross_validate(
            made, x, label, params={"server": server}, return_estimator=True, cv=3
        )
    sizes = [sum(r.n for r in one.sent_) for one in found["estimator"]]
    assert sizes == [600] * 3
    assert {len(one.sent_) for one in found["estimator"]} == {3}
    assert found["test_score"].mean() > 0.8
