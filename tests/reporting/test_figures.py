"""The figures of the report: drawn alike, complete, and of nobody's record."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from curvote.base.classes import Classes
from curvote.base.errors import InternalError
from curvote.chain.axis import Axis
from curvote.chain.lookup import all_systems
from curvote.chain.measure import Metric
from curvote.report import figures, page, sentences
from curvote.report.data import PageData, find_method, score_table
from curvote.systems.common.page.utilities import smooth_density
from tests.report_data import (
    LEARNERS,
    PROGRESS,
    make_page,
    make_sample,
    make_score,
    make_sections,
    one_learner,
)


@pytest.mark.parametrize("name", ["misclassification", "utilities", "curves"])
def test_same_data_same_drawing(name: str) -> None:
    """Every figure is drawn alike twice, with no date in it."""
    first, second = (
        one_learner(sections=make_sections(make_sample(6))) for _ in range(2)
    )
    drawn = figures.draw_figure(first, name, "svg")
    assert figures.draw_figure(second, name, "svg") == drawn
    assert b"<dc:date" not in drawn["svg"]


def test_svg_shows_every_method_and_learner() -> None:
    """The error figure names every method and every learner as text."""
    svg = figures.draw_figure(make_page(), "misclassification", "svg")["svg"].decode()
    for text in (*LEARNERS, *(find_method(key).label for key in PROGRESS), "Bayes"):
        assert f">{text}</text>" in svg


def test_only_public_records_are_drawn() -> None:
    """A sample of anybody but volunteers or simulated clients is refused."""
    with pytest.raises(InternalError, match="not public"):
        dataclasses.replace(make_sample(), who="train")


def test_at_most_sixty_curves_are_drawn_and_means_use_all() -> None:
    """Large samples are thinned evenly by class."""
    from curvote.systems.common.page.curves import MAX_CURVES, rows_to_draw

    sample = make_sample(501)
    rows = [rows_to_draw(sample, k) for k in (0, 1)]
    assert sum(map(len, rows)) == MAX_CURVES
    assert all((sample.labels[r] == k).all() for k, r in enumerate(rows))


def test_curves_of_five_classes_are_drawn_apart() -> None:
    """A mean for each class, in a colour of its own."""
    from curvote.systems.common.page.curves import draw_curves, rows_to_draw

    few = make_sample(100)
    labels, names = np.arange(100) % 5, Classes("abcde")
    sample = dataclasses.replace(few, labels=labels, classes=names)
    figure = draw_curves(sample, narrow=False)
    assert sum(len(rows_to_draw(sample, k)) for k in range(5)) == 60
    lines = figure.legends[0].get_lines()
    assert len({line.get_color() for line in lines}) == len(lines) == 5


def test_smoothing_keeps_mass_and_hides_the_lattice() -> None:
    """A ridge of 51 lattice points is smooth and holds every value in range."""
    values = np.random.default_rng(1).binomial(50, 0.5, 20_000) / 50
    x, density = smooth_density(values)
    peaks = np.sum((density[1:-1] > density[:-2]) & (density[1:-1] > density[2:]))
    assert peaks == 1
    assert abs(x[density.argmax()] - 0.5) < 0.02
    mean = (x * density).sum() / density.sum()
    assert abs(mean - values.mean()) < 1e-3


def test_unfinished_file_is_never_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed rewrite leaves the older file as it was."""
    target = figures.write_atomically(tmp_path / "a.txt", b"whole")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        figures.write_atomically(target, b"half")
    assert target.read_bytes() == b"whole"


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
