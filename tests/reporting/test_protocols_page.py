"""The report of a run with several protocols: each in its place, nothing lost."""

from pathlib import Path

import pytest

from curvote.cli.tables import print_scores
from curvote.pipeline.run.results import mean_scores
from curvote.report import figures
from curvote.report.data import PageData
from curvote.report.page import load_page_data
from curvote.report.sentences import headline, headline_tiles, verdict_sentence
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
    return load_page_data(project, plain.run(project))


def test_the_headline_is_that_of_auto(data: PageData) -> None:
    """Whatever it took; another arm at another epsilon is the same method."""
    assert headline(data).startswith("At epsilon 1, auto errs on")
    assert "at the largest epsilon" not in verdict_sentence(data).lower()


def test_every_protocol_is_drawn_in_a_panel_of_its_own(data: PageData) -> None:
    """A panel without a line would be a protocol that was lost."""
    drawn = figures.draw_lines(data, data.metrics[0], narrow=False)
    panels = {ax.get_title(): len(ax.containers) for ax in drawn.axes}
    assert list(panels) == ["auto", "votes", "centroid, mrma"]
    # One line, whatever it took, the majority, and the best single of votes.
    assert panels["auto"] == 3
    assert panels["votes"] == 3
    assert panels["centroid, mrma"] == 10


def test_what_each_protocol_asks_is_listed_with_its_loss(data: PageData) -> None:
    """Once, whatever the epsilon; the majority's label once for each protocol."""
    who = [release.who for release in data.releases]
    for name in PROTOCOLS:
        assert any(text.startswith(f"{name}: ") for text in who)
    messages = {loss.message for loss in data.losses}
    assert messages >= {"direct.report", "votes.vote"}
    assert all(loss.is_within_claim for loss in data.losses)
    assert len({(x.message, x.claimed) for x in data.losses}) == len(data.losses)


def test_what_auto_took_stands_on_the_page(data: PageData) -> None:
    """A line for each epsilon, with the numbers that decided."""
    said = [note for note in data.notes if note.startswith("auto, epsilon")]
    assert len(said) == 3
    assert "N epsilon^2 = 140" in said[0]


def test_what_privacy_costs_is_a_line_in_every_panel(tmp_path: Path) -> None:
    """And no panel of its own; nor is the majority's, which stands in each already.

    Nobody is said to be no better than without privacy: that is what it costs.
    """
    clean = {"name": "clean", "label": "no privacy", "train": None}
    among = ["auto", clean, "majority"]
    study = plain.of("auto", "clean", given=MANY | {"protocols": among})
    project = plain.write(tmp_path, tiny=study)
    record = plain.run(project)
    data = load_page_data(project, record)
    (panel,) = figures.draw_lines(data, data.metrics[0], narrow=False).axes
    level = [line for line in panel.lines if list(line.get_xdata()) == [0, 1]]
    assert len(level) == 2  # without privacy, and Bayes'
    assert "than guessing the larger class" in verdict_sentence(data)
    assert "; a learner without any privacy errs on " in headline(data)
    at = {name: where for _, _, name, where in headline_tiles(data)}
    assert at["a learner without any privacy"] == "no epsilon"


def test_auto_is_one_row_with_what_it_took_below(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under its own name, also where a setting has another label."""
    among = [{"name": "auto", "label": "ours"}, "majority"]
    study = plain.of("auto", given=MANY | {"protocols": among})
    project = plain.write(tmp_path, tiny=study)
    record = plain.run(project)
    print_scores(record, mean_scores(project, record))
    printed = capsys.readouterr().out.splitlines()
    rows = [line.split()[:2] for line in printed if line.startswith("ours ")]
    assert rows == [["ours", "best_single"]]
    assert len([line for line in printed if " auto " in line]) == 1
    took = "ours: votes at epsilon 1; joint at epsilon 60, epsilon 100"
    assert printed[-2:] == [took, ""]
