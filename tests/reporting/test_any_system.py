"""A page of any system: other metrics, another axis, no learners, no sections."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from curvote.chain.axis import Axis
from curvote.chain.lookup import all_systems
from curvote.chain.measure import Metric
from curvote.report import figures, page, sentences
from curvote.report.data import PageData, score_table
from tests.report_data import make_page, make_score

ACCURACY = Metric("accuracy", "accuracy", better="higher", display="number")
LOSS = Metric("loss", "log loss", display="number", words="Loss of each new {record}")
SIZE = Axis("size", lambda _: ("small", "large"))
VALUES = {("small", "own"): 0.7, ("large", "own"): 0.8, ("small", "other"): 0.9}


def rows(metric: Metric, sign: float = 1) -> list[dict[str, object]]:
    """Return scores of two methods at levels that are words."""
    return [
        make_score(0, None, method, 0)
        | {"level": level, "metric": metric.name, "value": sign * value, "se": 0.01}
        for (level, method), value in VALUES.items()
    ]


@pytest.fixture
def data() -> PageData:
    """Return a page whose headline is an accuracy, by size."""
    scores = pd.DataFrame([*rows(ACCURACY), *rows(LOSS, 2)]).assign(none_passed=None)
    return make_page(
        scores=scores,
        metrics=[ACCURACY, LOSS],
        main={"mrma": ["own"]},
        x=SIZE,
        sections=[],
        bounds={},
        record="record",
    )


def test_the_headline_is_its_own(data: PageData) -> None:
    """The first metric of the main method, at the last level: no error, no epsilon."""
    assert sentences.headline(data) == "At size large, own: accuracy 0.800 (± 0.010)."
    assert sentences.verdict_sentence(data) == ""
    assert sentences.headline_tiles(data) == [("0.800", "", "own", "size large")]


def test_higher_is_best_where_it_says_so(data: PageData) -> None:
    """Each metric has a table, in its own terms and in the order of its levels."""
    table = score_table(data.metric_scores(ACCURACY), ACCURACY, mark="*")
    assert list(table.index) == [("small", "own"), ("small", "other"), ("large", "own")]
    assert list(table["all"]) == [
        "0.7000 ± 0.0100",
        "0.9000 ± 0.0100*",
        "0.8000 ± 0.0100*",
    ]
    best = score_table(data.metric_scores(LOSS), LOSS, mark="*")["all"].str.endswith(
        "*"
    )
    assert list(best) == [True, False, True]


def test_each_metric_has_a_figure_in_one_panel(data: PageData, tmp_path: Path) -> None:
    """Named after the metric, along the system's own axis; the page shows them all."""
    drawn = figures.draw_lines(data, ACCURACY, narrow=False)
    (ax,) = drawn.axes
    assert ax.get_xlabel() == "size"
    assert ax.get_ylabel() == "accuracy"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["small", "large"]
    text = page.render_report(data, tmp_path).read_text()
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        f"{name}.{kind}" for name in ("accuracy", "loss") for kind in ("png", "svg")
    }
    for said in ("Accuracy at each size", "Loss of each new record", "the highest of"):
        assert said in text
    for foreign in ("cutoff", "Bayes", "misclassification", "† study", "Volunteers"):
        assert foreign not in text


def test_a_method_means_the_same_in_all_systems() -> None:
    """Its name is all that a table of scores holds."""
    every = {method for one in all_systems() for method in one.methods}
    assert len(every) == len({method.name for method in every})
