"""The figures of the report: drawn alike, complete, and of nobody's record."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from curvote.base.classes import Classes
from curvote.base.errors import InternalError
from curvote.report import figures
from curvote.report.data import find_method
from curvote.systems.common.page.utilities import smooth_density
from tests.report_data import (
    LEARNERS,
    PROGRESS,
    make_page,
    make_sample,
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
