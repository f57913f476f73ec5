"""Small pipelines that quantify before anything is collected."""

from typing import Any

FEATURES: dict[str, Any] = {
    "protocol": "utility",
    "source": {"name": "circle", "n_classes": 3},
    "clients": {"public": 40, "train": 120, "test": 30},
    "record": {"sensitive": ["x", "y"]},
    "models": [
        {
            "path": "sklearn.linear_model.LogisticRegression",
            "label": "logistic",
            "params": {"class_weight": "balanced"},
            "scale": "standard",
        },
        {
            "path": "sklearn.tree.DecisionTreeClassifier",
            "label": "tree",
            "params": {"max_depth": 3},
        },
    ],
    "deployments": {
        "mechanisms": ["pm_01", "joint_box"],
        "reads": ["raw", "decode"],
        "target": 0.7,
        "draws": 50,
        "directions": [1],
    },
    "epsilon": [2, 4],
    "replicates": 1,
    "seed": 7,
}
COEFFICIENTS: dict[str, Any] = {
    "protocol": "utility_curves",
    "source": {"name": "simulated", "points": 20},
    "clients": {"train": 60, "test": 20},
    "project": {"basis": "bspline", "size": 4},
    "learners": ["centroid"],
    "deployments": {"mechanisms": ["laplace", "joint_box"], "reads": ["raw"]},
    "epsilon": [4],
    "replicates": 1,
    "seed": 7,
}
