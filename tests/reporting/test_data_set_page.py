"""The data set on a page: what it holds, who holds it, how many of each class."""

from pathlib import Path

import numpy as np

from curvote.data.public import heart
from curvote.report import card
from curvote.report.page import render_report
from curvote.systems.common.page.curves import DataSet
from tests.report_data import small


def test_a_table_of_servers_shows_every_class(tmp_path: Path) -> None:
    """Two servers of a published data set, five classes, one that nobody has."""
    labels = np.array([0, 0, 1, 3, 4, 4, 4])
    names = ["a", "b", "<c>", "d", "e"]
    columns = {
        "curve": np.arange(14.0).reshape(7, 2),
        "label": labels,
        "group": np.array([0, 0, 0, 0, 1, 1, 1]),
    }
    facts = {
        "title": "Invented",
        "grid": [0, 1],
        "domain": [0, 1],
        "unit": "feature",
        "classes": names,
        "counts": dict(zip(names, np.bincount(labels).tolist(), strict=True)),
        "rows": 7,
        "servers": {"here": 4, "there": 3},
        "notes": [],
    }
    made = card.make_card("heart", heart.Parameters(), facts, columns)
    svg = card.render_card(made, columns, ["svg"])["svg"]
    page = render_report(small(sections=[DataSet(made, svg)]), tmp_path).read_text()
    rows = [[4, 2, 1, 0, 1, 0], [3, 0, 0, 0, 0, 3]]
    for name, row in zip(("here", "there"), rows, strict=True):
        cells = "".join(f"<td>{n}</td>" for n in row)
        assert f'<tr><th scope="row">{name}</th>{cells}</tr>' in page
    assert "a 2, b 1, &lt;c&gt; 0, d 1, e 3" in page
