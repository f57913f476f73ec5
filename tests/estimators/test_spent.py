"""What the scikit-learn classes say that their rows have spent."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate

from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.estimators import DirectClassifier, MRMAClassifier

CLASSES = [DirectClassifier, MRMAClassifier]
every_class = pytest.mark.parametrize("kind", CLASSES)
Data = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def data() -> Data:
    """Return 120 rows of two numbers, and labels."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (120, 2))
    return x, (x[:, 0] > 0).astype(int)


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
def test_a_failure_after_the_draw_has_counted(
    kind: type[Any], data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever saw the reports saw them, though no classifier came of it."""

    def fails(*_: object) -> None:
        raise RuntimeError("the server is gone")

    model = kind()
    step = "_fit_weak" if kind is MRMAClassifier else "_decode_rounds"
    with monkeypatch.context() as patch:
        patch.setattr(kind, step, fails)
        with pytest.raises(RuntimeError, match="gone"):
            model.fit(*data)
    assert model.spent_ == Budget(1)
    with pytest.raises(NotFittedError):
        model.predict(data[0])
    assert model.fit(*data).spent_ == Budget(2)


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
