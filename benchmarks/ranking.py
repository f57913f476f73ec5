"""How well `auto` ranks people where the majority errs as little as no privacy.

Run with ``python -m benchmarks.ranking``. Prints the area under the ROC curve (AUC) in
%, mean and standard error over 100 splits, of the two tables of docs/clients.md whose
errors tell nothing: few of their people are ill, so who guesses "well" is hardly wrong.
"""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from curvote.curves.basis import orthonormal, projection
from curvote.curves.encoding import volunteer_constants
from curvote.data.lookup import resolve_source
from curvote.data.raw_files import locate
from curvote.estimators.direct import DirectClassifier

ROOT = Path(__file__).parents[1]
EPSILONS = (0.5, 1, 2, 5, 10)
REPETITIONS = 100
PUBLIC, TRAINED = 50, {"stroke": 4100, "nhanes-2003": 2200}


def areas(name: str) -> np.ndarray[Any, Any]:
    """Return the AUC of each repetition at each epsilon, then without privacy."""
    dataset, parameters = resolve_source({"name": name})
    found_files = {name: locate(ROOT, name) for name in dataset.files(parameters)}
    paths = {name: file.path for name, file in found_files.items() if file}
    people = dataset.clients(parameters, paths)
    curves, labels = people["curve"], people["label"]
    found = np.empty((REPETITIONS, len(EPSILONS) + 1))
    for k in range(REPETITIONS):
        order = np.random.default_rng(k).permutation(len(labels))
        fit, test = np.split(order[PUBLIC:], [TRAINED[name]])
        settings: dict[str, Any] = {}
        if name == "stroke":
            facts = dataset.facts(parameters, paths)["features"]
            centre, low, high = (
                np.array([x[key] for x in facts])
                for key in ("centre", "lower", "upper")
            )
            scale = np.maximum(high - centre, centre - low) / 3
            settings = {"rescale": "tanh", "centre": centre, "scale": scale}
        else:
            onto = orthonormal(projection("fourier", 5, np.arange(curves.shape[1])))
            centre, scale = volunteer_constants(onto.apply(curves[order[:PUBLIC]]))
            settings = {"basis": "fourier", "n_basis": 5, "centre": centre}
            settings |= {"scale": scale, "grid": np.arange(curves.shape[1])}
        for j, epsilon in enumerate(EPSILONS):
            model = DirectClassifier(epsilon=epsilon, random_state=k, **settings)
            model.fit(curves[fit], labels[fit])
            score = model.decision_function(curves[test])
            found[k, j] = roc_auc_score(labels[test], score)
        clean = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        clean.fit(curves[fit], labels[fit])
        score = clean.decision_function(curves[test])
        found[k, -1] = roc_auc_score(labels[test], score)
    return found


if __name__ == "__main__":
    for name in TRAINED:
        values = 100 * areas(name)
        spread = values.std(axis=0, ddof=1) / sqrt(len(values))
        cells = zip(values.mean(axis=0), spread, strict=True)
        print(name, *(f"{mean:.1f} ± {error:.1f}" for mean, error in cells), sep=" | ")
