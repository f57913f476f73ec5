"""scikit-fda's classifiers of raw curves, without privacy, beside a study's methods."""

import numpy as np

from curvote.chain.lookup import find_system
from tests.memory import Memory, do

SIZES = {"public": 0, "train": 40, "vote": 0, "test": 40}
PARAMS = {"clients": SIZES, "source.groups": None, "seed": 1, "replicates": 1}


def errors(n_classes: int) -> dict[str, float]:
    """Return the errors by method on curves that differ by a step of their class."""
    rng, grid = np.random.default_rng(2), np.linspace(0, 1, 15)
    labels = np.arange(80) % n_classes
    curves = rng.standard_normal((80, 15)) + 4 * labels[:, None] * (grid > 0.5)
    rows = {"label": labels, "group": labels, "curve": curves}
    facts = {"grid": grid.tolist(), "classes": [*"abc"[:n_classes]]}
    made = {"ingest": Memory.of(facts, clients=[rows]), "project": Memory.of(facts)}
    (scores,) = do(find_system("functional").stages[-1], made, PARAMS).each("scores")
    wrong = scores["metric"] == "misclassification"
    names = scores["method"][wrong]
    return dict(zip(names, scores["value"][wrong], strict=True))


def test_all_three_learn_two_classes_and_two_of_them_three() -> None:
    """Logistic regression of scikit-fda tells two classes apart, and is left out."""
    two, three = errors(2), errors(3)
    kinds = {f"functional_{kind}" for kind in ("knn", "depth", "logistic")}
    assert set(two) == kinds
    assert set(three) == kinds - {"functional_logistic"}
    assert max([*two.values(), *three.values()]) < 0.2
