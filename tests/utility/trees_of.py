"""Small fitted ensembles of trees of every kind, and what was read of them."""

from functools import cache
from typing import Any

import numpy as np
from sklearn import ensemble, tree
from sklearn.base import clone

from curvote.mechanisms.base import atomic_law, product_law
from curvote.systems.utility.method.engines.base import Question
from curvote.systems.utility.method.engines.trees.engine import Trees, TreeSurface
from tests.utility.models_of import DATA

KINDS: dict[str, Any] = {
    "tree": tree.DecisionTreeClassifier(random_state=1),
    "extra tree": tree.ExtraTreeClassifier(random_state=1),
    "forest": ensemble.RandomForestClassifier(12, random_state=1),
    "shallow forest": ensemble.RandomForestClassifier(
        9, max_depth=4, min_samples_leaf=5, random_state=1, class_weight="balanced"
    ),
    "extra trees": ensemble.ExtraTreesClassifier(6, random_state=1),
    "boosting": ensemble.GradientBoostingClassifier(n_estimators=15, random_state=1),
    "boosting from zero": ensemble.GradientBoostingClassifier(
        n_estimators=8, init="zero", random_state=1
    ),
    "hist boosting": ensemble.HistGradientBoostingClassifier(
        max_iter=10, random_state=1
    ),
    "ada": ensemble.AdaBoostClassifier(n_estimators=12, random_state=1),
}


@cache
def fitted(kind, data):
    """Return the ensemble fitted to generated data."""
    given = DATA[data]()
    return clone(KINDS[kind]).fit(given.X, given.y)


def asked(model, data, n=5, seed=2):
    """Return the question of n other records."""
    given = DATA[data](n, seed)
    return Question(model, given.X, given.sensitive, given.bounds)


def read(question):
    """Return the surface of trees."""
    engine = Trees()
    assert engine.refusal(question) is None
    found = engine.surface(question)
    assert isinstance(found, TreeSurface)
    return found


def answered(surface, i, points):
    """Return the classes of record i at sensitive values (m, s), by its boxes."""
    boxes = surface.boxes.of(i, i + 1)
    pairs = zip(surface.cuts, points.T, strict=True)
    cell = np.array([np.searchsorted(cuts, value) for cuts, value in pairs])
    inside = boxes.low[:, None] <= cell[:, :, None]
    inside &= cell[:, :, None] < boxes.high[:, None]
    found = inside.all(axis=0)
    assert (found.sum(axis=1) == 1).all()
    return boxes.answer[found.argmax(axis=1)]


def predicted(question, i, points):
    """Return the model's own answers of record i at sensitive values (m, s)."""
    rows = np.tile(question.records[i], (len(points), 1))
    rows[:, list(question.sensitive)] = points
    return np.searchsorted(question.model.classes_, question.model.predict(rows))


def corners(surface, m, seed=3):
    """Return m points with each value on a cut or a float behind it, or anywhere."""
    rng = np.random.default_rng(seed)
    columns = []
    for cuts, (low, high) in zip(surface.cuts, surface.question.bounds, strict=True):
        anywhere = rng.uniform(low, high, m)
        own = rng.choice(cuts, m) if len(cuts) else anywhere
        behind = np.nextafter(own, np.inf)
        columns.append(np.choose(rng.integers(3, size=m), [own, behind, anywhere]))
    return np.column_stack(columns)


class At:
    """A channel whose output is what it is told: an atom a record, (n, s)."""

    def __init__(self, values):
        self.values = values

    def law(self, values):
        assert len(values) == len(self.values)
        one = np.ones((len(values), 1))
        return product_law(
            *(atomic_law(column[:, None], one) for column in self.values.T)
        )
