"""The page tells the truth, needs nothing else, and obeys no name on it."""

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from curvote.messages.measures import MISCLASSIFICATION
from curvote.report import page, sentences
from curvote.report.data import NO_VALUE, methods_by_name, score_table
from curvote.systems.common.page.curves import Curves
from curvote.systems.common.page.utilities import NonePassed, Utilities
from tests import report_data
from tests.report_data import make_page, make_scores, make_utilities, one_learner, small

FIGURES = ("misclassification", "utilities", "curves")


class Links(HTMLParser):
    """Collects what a page would load or run, its tags and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.roles: dict[str, str] = {}
        self.ids: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = {key: value or "" for key, value in attrs}
        self.references += [found[k] for k in ("src", "href", "data") if k in found]
        self.ids += [found["id"]] if "id" in found else []
        if found.get("role") == "img":
            self.roles[found["aria-label"]] = tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(path: Path) -> Links:
    """Parse a written page."""
    links = Links()
    links.feed(path.read_text())
    return links


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One full page, written once."""
    return page.render_report(make_page(), tmp_path_factory.mktemp("report"))


def test_page_asks_for_nothing(written: Path) -> None:
    """The page has no script, no outside reference, and no address of any kind."""
    links = parsed(written)
    assert not {"script", "link", "img", "iframe", "image"} & set(links.tags)
    assert all(reference.startswith("#") for reference in links.references)
    assert not re.search(r"https?:|url\((?!#)|@import", written.read_text())


def test_page_parts_refer_to_themselves(written: Path) -> None:
    """Every name inside the page exists once, and every reference meets one."""
    links = parsed(written)
    used = re.findall(r"url\(#([^)]+)\)", written.read_text())
    assert len(links.ids) == len(set(links.ids))
    assert {r[1:] for r in links.references} | set(used) <= set(links.ids)


def test_page_has_every_section(written: Path) -> None:
    """Result, errors, numbers, utilities, curves, releases, clients, rerun."""
    links = parsed(written)
    headed = [name[2:] for name in links.ids if name.startswith("h-")]
    assert " ".join(headed) == (
        "result errors table utilities curves releases clients rerun"
    )
    assert links.tags.count("h1") == 1
    assert len(links.roles) == len(FIGURES)


def test_same_data_same_bytes(tmp_path: Path) -> None:
    """The page and its figures' files are a pure function of the data."""
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        page.render_report(one_learner(), folder)
    one, two = ({f.name: f.read_bytes() for f in x.rglob("*.*")} for x in folders)
    assert one == two
    assert set(one) == {"report.html", "misclassification.png", "misclassification.svg"}


def test_figures_are_complete_and_small(written: Path) -> None:
    """Six files, none a blank, each SVG below 300 kB; no temporary file stays."""
    sizes = {p.name: p.stat().st_size for p in (written.parent / "figures").iterdir()}
    assert set(sizes) == {f"{n}.{k}" for n in FIGURES for k in ("png", "svg")}
    assert all(size > 20_000 for size in sizes.values())
    assert all(size < 300_000 for name, size in sizes.items() if name.endswith("svg"))
    assert {p.name for p in written.parent.iterdir()} == {"report.html", "figures"}


def test_hostile_names_are_text(tmp_path: Path) -> None:
    """Whatever stands in a name is shown, never obeyed: HTML, LaTeX, or shell."""
    evil = "<script>alert('$x_{')</script>&\""
    data = one_learner(pipeline=evil, title=evil, notes=(evil,), public=(evil,))
    scores = data.scores.replace({"learner": {"cg": evil}})
    data = dataclasses.replace(data, scores=scores)
    links = parsed(page.render_report(data, tmp_path))
    assert "script" not in links.tags
    assert evil in "".join(links.text)
    assert sentences.next_commands(data)[1][0] == (
        "curvote scores '<script>alert('\"'\"'$x_{'\"'\"')</script>&\"'"
    )


def test_holes_are_dashes(tmp_path: Path) -> None:
    """A learner without a method, an unknown error or one replicate do not stop it."""
    scores = make_scores()
    scores = scores[scores["learner"] != "logistic"]
    gone = (scores["learner"] == "cg") & (scores["method"] == "mr")
    gone |= (scores["level"] == 1.0) & (scores["method"] == "majority")
    scores = scores[~gone].assign(se=np.nan, replicates=1)
    scores.loc[scores["method"] == "ma", "value"] = np.nan
    utilities = make_utilities()
    keep = (utilities["learner"] == "centroid") | (utilities["epsilon"] > 1)
    keep &= utilities["learner"] != "logistic"
    sections = [Utilities(utilities[keep]), Curves(None, 0)]
    data = make_page(scores=scores, sections=sections, replicates=1)
    text = page.render_report(data, tmp_path).read_text()
    table = score_table(scores, MISCLASSIFICATION)
    assert (
        table.loc[(1.0, "mr"), "cg"] == table.loc[(1.0, "ma"), "centroid"] == NO_VALUE
    )
    assert "nan" not in "".join(parsed(tmp_path / "report.html").text).lower()
    assert "mean of one replicate" in text


def test_no_curves_is_explained_and_stale_ones_removed(tmp_path: Path) -> None:
    """Without public records the page says why, and an older drawing disappears."""
    stale = tmp_path / "figures" / "curves.svg"
    stale.parent.mkdir()
    stale.write_text("old")
    text = page.render_report(small(), tmp_path).read_text()
    assert "nobody else" in text
    assert not stale.exists()


def test_study_and_real_release_are_never_confused(tmp_path: Path) -> None:
    """A study says that it protects nobody; a real release never says so."""
    study, real = small(), small(private=True)
    assert "protects nobody" in page.render_report(study, tmp_path / "a").read_text()
    text = page.render_report(real, tmp_path / "b").read_text()
    assert "protects nobody" not in text
    assert "real release" in text
    assert "--seed" not in text
    assert "No true error is known" in text


def test_headline_states_the_best_learner_at_epsilon_one() -> None:
    """The first sentence holds MRMA's best error, guessing and Bayes, in percent."""
    text = sentences.headline(report_data.make_page())
    assert text.startswith("At epsilon 1, MRMA with centroid errs on 12.0 % (± 0.1)")
    assert "guessing the larger class errs on 48.1 %" in text
    assert text.endswith("is 10.0 %.")


def _known(bayes: float | None) -> dict[str, float]:
    return {} if bayes is None else {"misclassification": bayes}


@pytest.mark.parametrize("bayes", [None, 0.25])
def test_headline_speaks_of_bayes_only_if_known(bayes: float | None) -> None:
    """An unknown Bayes error is not mentioned; a known one is."""
    assert (
        "25.0 %" in sentences.headline(report_data.make_page(bounds=_known(bayes)))
    ) is bool(bayes)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ((0.40, 0.30), "at every epsilon tried"),
        ((0.50, 0.30), "from epsilon 2 on; at 1 it is not"),
        ((0.30, 0.479), "largest epsilon tried, 2, MRMA with a is not clearly"),
    ],
)
def test_verdict_needs_more_than_noise(
    errors: tuple[float, ...], expected: str
) -> None:
    """A level counts as better than guessing only beyond two standard errors."""
    rows = [
        report_data.make_score(e, "a", "mrma", x)
        for e, x in zip((1.0, 2.0), errors, strict=True)
    ]
    rows += [report_data.make_score(e, None, "majority", 0.48) for e in (1.0, 2.0)]
    assert expected in sentences.verdict_sentence(
        report_data.make_page(scores=pd.DataFrame(rows))
    )


def test_score_table_reads_in_fixed_order() -> None:
    """Rows follow epsilon and the methods' order, whatever the order of the input."""
    scores = report_data.make_scores().sample(frac=1, random_state=3)
    table = score_table(scores, MISCLASSIFICATION, mark="*")
    methods = [
        key for key in methods_by_name() if key in {*report_data.PROGRESS, "majority"}
    ]
    assert methods[:2] + methods[-1:] == ["mrma", "weak", "majority"]
    assert list(table.index) == [(e, m) for e in report_data.EPSILONS for m in methods]
    assert table.loc[(1.0, "mrma"), "centroid"] == "12.00 ± 0.10*"
    assert table.loc[(1.0, "majority")].nunique() == 1
    assert table.stack().str.endswith("*").groupby("level").sum().eq(1).all()


def test_protocols_are_told_apart() -> None:
    """Two protocols with the same method fill two rows, each with its own number."""
    one = report_data.make_scores()
    both = pd.concat([one, one.assign(protocol="direct", value=0.25)])
    table = score_table(both, MISCLASSIFICATION)
    assert table.loc[(1.0, "mrma: mrma"), "centroid"].startswith("12.00")
    assert table.loc[(1.0, "direct: mrma"), "centroid"].startswith("25.00")


def test_how_often_none_passed_is_told() -> None:
    """Methods where it happened are listed, in percent for each epsilon."""
    expected = [
        (f"{method}, {learner}", ["0", "0", "48", "0"])
        for method in ("MRMA", "MA")
        for learner in report_data.LEARNERS
    ]
    assert NonePassed(0.8, report_data.make_scores()).rows == expected
