"""The page of private labels: each class, what codes say of models, what one says."""

from typing import Any

import numpy as np
import pytest

from curvote.report import figures
from curvote.report.data import PageData
from curvote.report.page import load_page_data
from curvote.systems.labels.metrics import ACCURACY
from tests import plain
from tests.report_data import section

STUDY: dict[str, Any] = {
    "source": {"name": "circle", "sigma": "2/K"},
    "clients": {"train": 500, "test": 150},
    "grid": {"source.n_classes": [3, 5]},
    "learners": [{"name": "knn", "k": 40, "label": "knn-40"}],
    "protocols": [
        {"name": "labels", "label": "auto"},
        {"name": "labels", "label": "rr", "encoder": "rr"},
        {"name": "labels_clean", "label": "clean"},
    ],
    "epsilon": [1, 4],
    "replicates": 2,
    "seed": 5,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> PageData:
    """Return what the page of a small study is made of."""
    project = plain.write(tmp_path_factory.mktemp("labels"), tiny=STUDY)
    return load_page_data(project, plain.run(project))


def test_it_shows_what_such_a_page_has(data: PageData, text: str) -> None:
    """Every section has its heading or words; what is public is said to be."""
    assert {each.name for each in data.sections} == {
        *("features", "by_classes", "honest", "each_class"),
        *("calibrated", "said_by_one"),
    }
    for said in (
        "How accuracy falls with the number of classes",
        "What the server itself says of its models",
        "Can probabilities be believed?",
        "Features are public here",
        "What one noised label gives away",
    ):
        assert said in text
    assert "the 2 numbers of each of 650 records" in " ".join(data.public)
    assert "nan" not in text.lower().split()


def test_metrics_beside_the_accuracy_stand_in_tables_only(data: PageData) -> None:
    """Calibration and what codes say have figures, or tables, of their own."""
    assert [metric.name for metric in data.figure_metrics] == [
        ACCURACY.name,
        "balanced_accuracy",
    ]
    assert {"ece", "honest"} < {metric.name for metric in data.measured_metrics}


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("name", ["by_classes", "calibrated"])
def test_its_figures_are_drawn(data: PageData, name: str, narrow: bool) -> None:
    """Twice the same bytes; the words for who cannot see it name every encoder."""
    first = figures.draw_figure(data, name, "svg", narrow=narrow)["svg"]
    assert first == figures.draw_figure(data, name, "svg", narrow=narrow)["svg"]
    assert section(data, name).alt_text
    assert section(data, "by_classes").encoders == ["auto", "rr"]


def test_each_class_has_a_share_and_a_recall(data: PageData) -> None:
    """Of the cell nearest to epsilon 1, in percent; tested shares sum to 100."""
    found = section(data, "each_class")
    assert "epsilon 1" in found.called
    assert [row.name for row in found.rows] == ["0", "1", "2"]
    assert np.isclose(sum(float(row.true) for row in found.rows), 100, atol=0.2)


def test_what_codes_say_of_models_stands_beside_the_truth(data: PageData) -> None:
    """One row for each encoder and epsilon, its interval around the estimate."""
    found = section(data, "honest")
    assert [(row.series, row.epsilon) for row in found.rows] == [
        *(("auto", "1"), ("auto", "4")),
        *(("rr", "1"), ("rr", "4")),
    ]
    assert found.holdout_size == 100
    for row in found.rows:
        low, high = map(float, row.interval.split(" to "))
        assert low < float(row.estimate) < high


def test_one_code_says_no_more_than_the_ceiling(data: PageData) -> None:
    """e^eps/K bounds what is kept; randomized response keeps its own share."""
    found = section(data, "said_by_one")
    kept = {row.series: float(row.retention) for row in found.rows}
    assert set(kept) == {"auto", "rr"}
    assert max(kept.values()) <= float(found.ceiling)
    assert found.odds == "2.72"
