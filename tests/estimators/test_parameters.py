"""Wrong parameters: each is named as the user wrote it, and nothing is spent."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from curvote import (
    DirectClassifier,
    MRMAClassifier,
    PrivateLabelClassifier,
    PrivateLabelRegressor,
    PrivateSearchCV,
    Spectral,
    TransferKernelClassifier,
    UserError,
)

NAN = float("nan")
NUMBER = [0, -1, "one", NAN, None, [1]]
COUNT = [0, 2.5, "five", None]
SHARE = [0, 1, "x", None]
NAME = ["sof", 3, None]
ENDS = [(1, -1), (0, 0), (0,), 5, ("a", "b"), (0, NAN), None]
CURVES = {
    "basis": ["splines", 3],
    "n_basis": [*COUNT, 3, 50],
    "order": COUNT,
    "derivative": [-1, 3, 1.5, "one", None],
    "grid": ["abc", [[1, 2]], [0, NAN] * 10, np.linspace(1, 0, 20)],
    "epsilon": [*NUMBER, float("inf"), 1e-9],
    "rescale": ["tan", 3],
    "centre": ["a", NAN, [1, 2], None],
    "scale": ["a", 0, [1, 2], None],
    "bounds": ENDS,
    "public_curves": ["abc", [[1.0, 2.0]]],
    "random_state": ["a"],
}
DIRECT = CURVES | {
    "coordinates": NAME,
    "arm": NAME,
    "balance": ["abc", [0.5], [0.9, 0.9], [1.0, 0.0]],
    "intercept": [*NUMBER, "sof"],
}
MRMA = CURVES | {
    "judge": NAME,
    "mechanism": [*NAME, "k_rr", "gaussian"],
    "label_share": [*SHARE, "equl", 2],
    "rescale": ["tan", 3, "standard"],
    "learner": NAME,
    "n_learners": COUNT,
    "n_per_learner": [*COUNT, 1],
    "train_share": SHARE,
    "cutoff": [0.3, 1, "x", None],
    "when_none_pass": NAME,
}
LABELS = {
    "estimator": NAME,
    "epsilon": NUMBER,
    "encoder": NAME,
    "classes": [[0], 3, [0, 0], "ab"],
    "decide": NAME,
    "calibrate": ["x", None],
    "random_state": ["a"],
}
REGRESSOR = {
    "estimator": NAME,
    "epsilon": NUMBER,
    "bounds": ENDS,
    "randomizer": [*NAME, "laplace"],
    "prior": ["x", [0, 0], -1, [[1]]],
    "share": SHARE,
    "random_state": ["a"],
}
SEARCH = {
    "estimator": ["knn", 3],
    "grid": [3, [], {"kind": [1]}, {"estimator": "knn"}, {"estimator": []}],
    "holdout": SHARE,
    "scoring": NAME,
    "random_state": ["a"],
}
SPECTRAL = {
    "m": [*COUNT, 50],
    "anchors": [*COUNT, 500],
    "neighbours": [*COUNT, 50],
    "random_state": ["a"],
}
TRANSFER = {
    "epsilon": [*NUMBER, "publi"],
    "delta": [*SHARE[:3], NAN],
    "release": NAME,
    "target": ["b", 3],
    "weights": [*NAME, {}, {"b": 1}, {"server": -1}],
    "decide": NAME,
    "bounds": ENDS,
    "random_state": ["a"],
}
Table = tuple[type[Any], dict[str, list[Any]], dict[str, Any]]
TABLES: list[Table] = [
    (DirectClassifier, DIRECT, {"basis": "bspline"}),
    (MRMAClassifier, MRMA, {"basis": "bspline"}),
    (PrivateLabelClassifier, LABELS, {"estimator": "knn"}),
    (PrivateLabelRegressor, REGRESSOR, {"randomizer": "rr_on_bins"}),
    (PrivateSearchCV, SEARCH, {"holdout": 0.5}),
    (Spectral, SPECTRAL, {"m": 2, "anchors": 20}),
    (TransferKernelClassifier, TRANSFER, {}),
]


def wrong() -> Iterator[Any]:
    """Yield each class with each wrong value of each of its parameters."""
    for kind, table, given in TABLES:
        for name, values in table.items():
            for value in values:
                said = f"{kind.__name__}-{name}-{str(value)[:20]}"
                yield pytest.param(kind, given, name, value, id=said)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    """Return 120 rows of 20 numbers, and labels."""
    x = np.random.default_rng(0).uniform(-1, 1, (120, 20))
    return x, (x[:, 0] > 0).astype(int)


@pytest.mark.parametrize(("kind", "given", "name", "value"), list(wrong()))
def test_a_wrong_value_is_named_and_spends_nothing(
    kind: Any, given: dict[str, Any], name: str, value: Any, data: Any
) -> None:
    """A UserError, before anything was drawn."""
    model = kind(**given | {name: value})
    with pytest.raises(UserError) as refused:
        model.fit(*data)
    text = str(refused.value)
    called = r"lower|bounds" if name == "bounds" else re.escape(name)
    assert re.search(rf"\b({called})\b", text), text
    assert len(text.splitlines()) <= 5
    assert getattr(model, "spent_", None) is None


@pytest.mark.parametrize("kind", [DirectClassifier, MRMAClassifier])
def test_the_fourier_basis_is_odd(kind: Any, data: Any) -> None:
    """Its size is refused, and said why."""
    with pytest.raises(UserError, match="odd"):
        kind(basis="fourier", n_basis=4).fit(*data)


@pytest.mark.parametrize(("kind", "table"), [each[:2] for each in TABLES])
def test_every_parameter_stands_in_the_table(
    kind: type[Any], table: dict[str, list[Any]]
) -> None:
    """A new one is tried out, too."""
    assert set(table) == set(inspect.signature(kind).parameters)
