"""The report of a run with several protocols: each in its place, nothing lost."""

from __future__ import annotations

import pytest

from curvote.reporting import figures
from curvote.reporting.data import PageData
from curvote.reporting.gather import page_data
from curvote.reporting.words import headline, verdict
from tests import plain

PROTOCOLS = ["auto", "votes", "mrma"]
MANY = plain.TINY | {
    "protocols": PROTOCOLS,
    "learners": ["centroid"],
    "epsilon": [1, 60, 100],
    "replicates": 3,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> PageData:
    """Return what the page of such a run is made of."""
    project = plain.write(tmp_path_factory.mktemp("page"), tiny=MANY)
    return page_data(project, plain.run(project))


def test_the_headline_is_that_of_auto(data: PageData) -> None:
    """With the arm it took; another arm at another epsilon is the same method."""
    assert headline(data).startswith("At epsilon 1, auto (direct, mean) errs on")
    assert "at the largest epsilon" not in verdict(data).lower()


def test_every_protocol_is_drawn_in_a_panel_of_its_own(data: PageData) -> None:
    """A panel without a line would be a protocol that was lost."""
    drawn = figures.lines(data, data.metrics[0], narrow=False)
    panels = {ax.get_title(): len(ax.containers) for ax in drawn.axes}
    assert list(panels) == ["auto", "votes", "centroid, mrma"]
    assert panels["auto"] == 3  # mean, two, and the majority
    assert panels["votes"] == 3
    assert panels["centroid, mrma"] == 10


def test_what_each_protocol_asks_is_listed_with_its_loss(data: PageData) -> None:
    """Once, whatever the epsilon; the majority's label once for each protocol."""
    who = [release.who for release in data.releases]
    for name in PROTOCOLS:
        assert any(text.startswith(f"{name}: ") for text in who)
    messages = {loss.message for loss in data.losses}
    assert messages >= {"direct.report", "direct_two.refinement", "votes.vote"}
    assert all(loss.holds for loss in data.losses)
    assert len({(x.message, x.claimed) for x in data.losses}) == len(data.losses)


def test_what_auto_took_stands_on_the_page(data: PageData) -> None:
    """A line for each epsilon, with the numbers that decided."""
    said = [note for note in data.notes if note.startswith("auto, epsilon")]
    assert len(said) == 3
    assert "N epsilon^2 = 140" in said[0]
