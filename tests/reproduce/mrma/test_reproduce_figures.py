"""The figures of `curvote reproduce`: complete, marked, drawn alike twice."""

from functools import cache
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from curvote.papers.registry import reproductions
from curvote.papers.rows import Row
from tests import reproduce_rows
from tests.reproduce_rows import (
    WITHOUT_SUMMARIES,
    comparison,
    entries_of,
    found,
    summaries,
)

SHOWN = {
    "table-1": ("weak", "MRMA", "histogram", "z of every cell", "printed"),
    "table-2": ("voting", "1000"),
    "table-a1": ("logistic", "dwd", "max_abs 6", "initial"),
    "figure-1": ("weight omega, epsilon 0.01", "g(z0), from reports and by theory"),
    "figure-2": ("logistic", "cg", "best single", "majority (nothing learnt)"),
    "figure-3": ("splitting clients", "splitting the budget", "each server alone"),
    "figure-4": ("svm", "MRMA"),
    "figure-5": ("dwd", "all data"),
    "figure-a1": ("tanh", "max_abs", "none"),
    "figure-a6": ("d = 1", "d = 10", "exact", "from reports"),
    "beyond": (
        "auto",
        "best published method",
        "clean",
        "nhanes-2003",
        "auto has lost",
    ),
    "cases-a2": ("case 1: N0 500, N1 2500, n0 100, n1 100, B 25", "svm, MA"),
    "cases-a3": ("case 8: N0 2500, N1 5000, n0 250, n1 100, B 50", "cg, weak"),
}
EPSILONS = {0.1, 0.01, 1.0, 10.0, 1000.0, None}


def few(name: str) -> list[Row]:
    """Some rows of a figure, all of a table: quick to draw."""
    rows = comparison(name, summaries(name))
    if name.startswith("table"):
        return rows
    return [row for row in rows if row["epsilon"] in EPSILONS]


def svg(name: str, rows: list[Row]) -> str:
    """The drawing as text."""
    return reproduce_rows.svg(name, rows, found(name, rows))


@cache
def drawn(name: str) -> str:
    """The drawing of a few rows, made once."""
    return svg(name, few(name))


def test_every_name_has_its_figure_here() -> None:
    """No reproduction is left out below."""
    assert set(SHOWN) == set(entries_of("mrma")) - WITHOUT_SUMMARIES


@pytest.mark.parametrize("name", SHOWN)
def test_figure_names_what_it_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every panel and line that a reader looks for has its name, as text.

    Asked of the figure itself: one with that many names takes long to be laid out.
    """
    texts: set[str] = set()

    def read(figure: Figure, _: str) -> bytes:
        texts.update(t.get_text() for t in figure.findobj(Text) if t.get_visible())
        return b""

    monkeypatch.setattr("curvote.report.figures.save_bytes", read)
    svg(name, few(name))
    assert {*SHOWN[name]} <= texts


@pytest.mark.parametrize(
    "name",
    [
        "figure-a1",
        *(pytest.param(n, marks=pytest.mark.faults) for n in ("table-a1", "figure-1")),
    ],
)
def test_same_rows_same_drawing(name: str) -> None:
    """The same rows are drawn alike twice, with no date."""
    assert svg(name, few(name)) == drawn(name)
    assert "<dc:date" not in drawn(name)


def test_cells_beyond_three_errors_are_marked() -> None:
    """Each cell with |z| above 3 has a red ring, beside the one of the legend."""
    rows = few("table-a1")
    rings = [drawn("table-a1").count("stroke: #c1121f")]
    for row in rows[:4]:
        row["z"] = -3.5
    rings.append(svg("table-a1", rows).count("stroke: #c1121f"))
    assert rings[1] - rings[0] >= 4


def test_files_of_a_reproduction(tmp_path: Path) -> None:
    """Rows as CSV and JSON, the figure as SVG and PNG; a line for each row."""
    rows = few("cases-a3")
    folder, evidence = tmp_path / "reproduce", found("cases-a3", rows)
    written = reproductions()["cases-a3"].write(folder, rows, evidence)
    assert {path.name for path in written} == {
        "comparison.csv",
        "comparison.json",
        "cases-a3.svg",
        "cases-a3.png",
    }
    lines = written[0].read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(rows) + 1
    assert lines[0].startswith("pipeline,setting,protocol,")
