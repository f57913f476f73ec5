"""The scikit-learn classes of private labels under scikit-learn's own checks."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import check_estimator

from curvote.labels import PrivateLabelClassifier, PrivateSearchCV, Spectral

SURE = PrivateLabelClassifier("knn", epsilon=12.0)
SMALL = {"holdout": 0.5, "random_state": 0}  # the checks have 10 records at times


@pytest.mark.parametrize(
    "model",
    [
        PrivateLabelClassifier(random_state=0),
        PrivateLabelClassifier("spectral", random_state=0),
        PrivateLabelClassifier(Ridge(), random_state=0),
        PrivateLabelClassifier("ridge", calibrate=False, random_state=0),
        PrivateLabelClassifier("knn", encoder="lp_2st", random_state=0),
        PrivateSearchCV(SURE, {"estimator": ["ridge", "knn"]}, **SMALL),
        Spectral(m=2, anchors=5, neighbours=3, random_state=0),
    ],
    ids=["auto", "spectral", "foreign", "ridge", "lp_2st", "search", "transformer"],
)
def test_scikit_learn_finds_nothing_to_complain_about(model: Any) -> None:
    """All of its checks, for one that need not score well and may draw at random."""
    results = check_estimator(model, on_fail=None, on_skip=None)
    failed = [r["check_name"] for r in results if r["status"] == "failed"]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 40


@pytest.mark.parametrize("kind", [PrivateLabelClassifier, PrivateSearchCV])
def test_the_tags_are_honest(kind: type[Any]) -> None:
    """A poor score is to be expected; without a seed nothing repeats."""
    tags = kind().__sklearn_tags__()
    assert tags.classifier_tags.poor_score
    assert tags.classifier_tags.multi_class
    assert tags.non_deterministic
    assert not kind(random_state=0).__sklearn_tags__().non_deterministic
