"""The report tells the truth, needs nothing else, and shows nobody's record."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from curvote.errors import InternalError
from curvote.protocols.stage import Release
from curvote.reporting import figures, page, words
from curvote.reporting.data import (
    METHODS,
    NOTHING,
    SCORE_COLUMNS,
    CurveSample,
    PageData,
    score_table,
)

LEARNERS = ("logistic", "cg", "centroid")
EPSILONS = (0.1, 0.5, 1.0, 5.0)
# How far each method gets from 50 % towards the Bayes error, by epsilon.
PROGRESS = {
    "mrma": (0.08, 0.65, 0.95, 0.99),
    "ma": (0.04, 0.55, 0.88, 0.985),
    "mr": (0.03, 0.25, 0.62, 0.94),
    "best_single": (0.03, 0.4, 0.82, 0.96),
    "weak": (0.005, 0.04, 0.15, 0.93),
    "all_data": (0.01, 0.1, 0.45, 0.97),
    "averaging": (0.008, 0.09, 0.4, 0.96),
    "voting": (0.006, 0.08, 0.35, 0.955),
}
HANDICAP = {"logistic": 0.12, "cg": 0.2, "centroid": 0.0}


def make_scores() -> pd.DataFrame:
    """Scores like those of the simulated pipeline."""
    rows: list[dict[str, Any]] = []
    for k, epsilon in enumerate(EPSILONS):
        for method, progress in PROGRESS.items():
            for learner in LEARNERS:
                part = max(0.0, progress[k] * (1 - HANDICAP[learner] * (1.4 - k / 3)))
                passes = method in ("mrma", "ma")
                rows.append(
                    _score(epsilon, learner, method, 0.5 - 0.4 * part)
                    | {"none_passed": 0.48 * (k == 2) * passes if passes else None}
                )
        rows.append(_score(epsilon, None, "majority", (0.495, 0.484, 0.481, 0.48)[k]))
    return pd.DataFrame(rows)[list(SCORE_COLUMNS)]


def _score(
    epsilon: float, learner: str | None, method: str, error: float
) -> dict[str, Any]:
    return {
        "pipeline": "simulated",
        "protocol": "mrma",
        "epsilon": epsilon,
        "learner": learner,
        "method": method,
        "misclassification": error,
        "se": 0.0008 + 0.012 * (error - 0.1),
        "replicates": 100,
        "none_passed": None,
    }


def make_utilities(each: int = 400) -> pd.DataFrame:
    """Estimated utilities on their lattice: 50 noised votes for each classifier."""
    draw = np.random.default_rng(5)
    tables = []
    for epsilon in EPSILONS:
        q = 1 / (1 + np.exp(-epsilon))
        for learner in LEARNERS:
            gain = 0.38 * np.tanh(epsilon) * (1 - HANDICAP[learner])
            sign = draw.choice([-1, 1], each, p=[0.3, 0.7])
            right = np.clip(0.5 + sign * gain + draw.normal(0, 0.07, each), 0.05, 0.93)
            votes = draw.binomial(50, q * right + (1 - q) * (1 - right)) / 50
            utility = (votes + q - 1) / (2 * q - 1)
            tables.append(
                pd.DataFrame(
                    {"epsilon": epsilon, "learner": learner, "utility": utility}
                )
            )
    return pd.concat(tables, ignore_index=True)


def make_sample(n: int = 80) -> CurveSample:
    """Simulated curves of two classes and a polynomial projection of them."""
    draw = np.random.default_rng(7)
    grid = np.linspace(0, 1, 100)
    labels = np.arange(n) % 2
    waves = np.stack([np.cos(np.pi * j * grid) for j in range(12)])
    weights = draw.normal(0, 1, (n, 12)) / np.arange(1, 13)
    weights[:, 1] += np.where(labels == 1, 0.9, -0.9)
    curves = weights @ waves
    powers = np.stack([grid**j for j in range(4)])
    coefficients = curves @ np.linalg.pinv(powers)
    return CurveSample(
        grid=grid,
        unit="t",
        domain=(0.0, 1.0),
        curves=curves,
        fitted=coefficients @ powers,
        z=np.tanh(coefficients / coefficients.std(axis=0)),
        labels=labels,
        classes=("negative", "positive"),
        basis="4 cubic B-splines",
        rescale="tanh",
        who="simulated",
    )


RELEASES = (
    Release(
        "each training client",
        "4 noised coordinates and a noised label",
        "laplace, binary_rr",
        "epsilon in all",
        "each coordinate and the label get epsilon/5",
    ),
    Release(
        "each vote client",
        "one bit: was this classifier right for me?",
        "binary_rr",
        "epsilon",
        "flipped with probability 1/(1 + e^epsilon)",
    ),
    Release(
        "each client",
        "a noised report for all data, averaging and voting",
        "laplace, binary_rr",
        "epsilon in all",
        study_only=True,
    ),
    Release("each client", "a noised label", "binary_rr", 1.25, study_only=True),
)


def make_page(**changes: Any) -> PageData:
    """A realistic page, with ``changes``."""
    data = PageData(
        pipeline="simulated",
        title="Simulated curves (MRMA, section 6)",
        replicates=100,
        seed=20240801,
        protocol="mrma",
        generated="2024-08-01",
        run_id="20240801-060000-ab12",
        scores=make_scores(),
        utilities=make_utilities(),
        cutoff=0.8,
        curves=make_sample(),
        clients={
            "train": (500, 500, 500),
            "vote": (2500, 2500, 2500),
            "test": (500, 497, 500),
        },
        groups=None,
        releases=RELEASES,
        public=(
            "Basis: 4 cubic B-splines on [0, 1], from pipelines.yaml.",
            "Rescaling: tanh with centre 0 and scale 1, from pipelines.yaml.",
        ),
        volunteers=0,
        notes=("The unit of privacy is one curve.",),
        bayes_error=0.1,
    )
    return dataclasses.replace(data, **changes)


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
    return page.render(make_page(), tmp_path_factory.mktemp("report"))


def small(**changes: Any) -> PageData:
    """A page with no figures, quick to write."""
    nothing = {"scores": make_scores().iloc[:0], "utilities": make_utilities(2)[:0]}
    return make_page(**({"curves": None} | nothing | changes))


def one_learner(**changes: Any) -> PageData:
    """A page with one learner and few curves, quick to draw."""
    scores, utilities = make_scores(), make_utilities()
    mine = scores["learner"].isna() | (scores["learner"] == "cg")
    few = {"scores": scores[mine], "utilities": utilities[utilities["learner"] == "cg"]}
    return make_page(**({"curves": None} | few | changes))


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
    assert len(links.roles) == len(figures.FIGURES)


def test_same_data_same_bytes(tmp_path: Path) -> None:
    """The page and its figures' files are a pure function of the data."""
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        page.render(one_learner(utilities=make_utilities()[:0]), folder)
    one, two = ({f.name: f.read_bytes() for f in x.rglob("*.*")} for x in folders)
    assert one == two
    assert set(one) == {"report.html", "misclassification.png", "misclassification.svg"}


@pytest.mark.parametrize("name", list(figures.FIGURES))
def test_same_data_same_drawing(name: str) -> None:
    """Every figure is drawn alike twice, with no date in it."""
    first, second = (one_learner(curves=make_sample(6)) for _ in range(2))
    drawn = figures.draw(first, name, "svg")
    assert figures.draw(second, name, "svg") == drawn
    assert b"<dc:date" not in drawn["svg"]


def test_figures_are_complete_and_small(written: Path) -> None:
    """Six files, none a blank, each SVG below 300 kB; no temporary file stays."""
    sizes = {p.name: p.stat().st_size for p in (written.parent / "figures").iterdir()}
    assert set(sizes) == {f"{n}.{k}" for n in figures.FIGURES for k in ("png", "svg")}
    assert all(size > 20_000 for size in sizes.values())
    assert all(size < 300_000 for name, size in sizes.items() if name.endswith("svg"))
    assert {p.name for p in written.parent.iterdir()} == {"report.html", "figures"}


def test_svg_shows_every_method_and_learner() -> None:
    """The error figure names every method and every learner as text."""
    svg = figures.draw(make_page(), "misclassification", "svg")["svg"].decode()
    for text in (*LEARNERS, *(METHODS[key].label for key in PROGRESS), "Bayes"):
        assert f">{text}</text>" in svg


def test_hostile_names_are_text(tmp_path: Path) -> None:
    """Whatever stands in a name is shown, never obeyed: HTML, LaTeX, or shell."""
    evil = "<script>alert('$x_{')</script>&\""
    data = one_learner(pipeline=evil, title=evil, notes=(evil,), public=(evil,))
    scores = data.scores.replace({"learner": {"cg": evil}})
    data = dataclasses.replace(data, scores=scores, utilities=data.utilities[:0])
    links = parsed(page.render(data, tmp_path))
    assert "script" not in links.tags
    assert evil in "".join(links.text)
    assert words.commands(data)[1][0] == (
        "curvote scores '<script>alert('\"'\"'$x_{'\"'\"')</script>&\"'"
    )


def test_headline_states_the_best_learner_at_epsilon_one() -> None:
    """The first sentence holds MRMA's best error, guessing and Bayes, in percent."""
    text = words.headline(make_page())
    assert text.startswith("At epsilon 1, MRMA with centroid errs on 12.0 % (± 0.1)")
    assert "guessing the larger class errs on 48.1 %" in text
    assert text.endswith("is 10.0 %.")


@pytest.mark.parametrize("bayes", [None, 0.25])
def test_headline_speaks_of_bayes_only_if_known(bayes: float | None) -> None:
    """An unknown Bayes error is not mentioned; a known one is."""
    assert ("25.0 %" in words.headline(make_page(bayes_error=bayes))) is bool(bayes)


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
    rows = [_score(e, "a", "mrma", x) for e, x in zip((1.0, 2.0), errors, strict=True)]
    rows += [_score(e, None, "majority", 0.48) for e in (1.0, 2.0)]
    assert expected in words.verdict(make_page(scores=pd.DataFrame(rows)))


def test_score_table_reads_in_fixed_order() -> None:
    """Rows follow epsilon and the methods' order, whatever the order of the input."""
    table = score_table(make_scores().sample(frac=1, random_state=3), mark="*")
    methods = [key for key in METHODS if key in {*PROGRESS, "majority"}]
    assert list(table.index) == [(e, m) for e in EPSILONS for m in methods]
    assert table.loc[(1.0, "mrma"), "centroid"] == "12.00 ± 0.10*"
    assert table.loc[(1.0, "majority")].nunique() == 1
    assert table.stack().str.endswith("*").groupby("epsilon").sum().eq(1).all()


def test_protocols_are_told_apart() -> None:
    """Two protocols with the same method fill two rows, each with its own number."""
    one = make_scores()
    both = pd.concat([one, one.assign(protocol="direct", misclassification=0.25)])
    table = score_table(both)
    assert table.loc[(1.0, "mrma: mrma"), "centroid"].startswith("12.00")
    assert table.loc[(1.0, "direct: mrma"), "centroid"].startswith("25.00")


def test_holes_are_dashes(tmp_path: Path) -> None:
    """A learner without a method, an unknown error or one replicate do not stop it."""
    scores = make_scores()
    scores = scores[scores["learner"] != "logistic"]
    gone = (scores["learner"] == "cg") & (scores["method"] == "mr")
    gone |= (scores["epsilon"] == 1.0) & (scores["method"] == "majority")
    scores = scores[~gone].assign(se=np.nan, replicates=1)
    scores.loc[scores["method"] == "ma", "misclassification"] = np.nan
    utilities = make_utilities()
    keep = (utilities["learner"] == "centroid") | (utilities["epsilon"] > 1)
    keep &= utilities["learner"] != "logistic"
    data = make_page(
        scores=scores, utilities=utilities[keep], replicates=1, curves=None
    )
    text = page.render(data, tmp_path).read_text()
    table = score_table(scores)
    assert table.loc[(1.0, "mr"), "cg"] == table.loc[(1.0, "ma"), "centroid"] == NOTHING
    assert "nan" not in "".join(parsed(tmp_path / "report.html").text).lower()
    assert "mean of one replicate" in text


def test_no_curves_is_explained_and_stale_ones_removed(tmp_path: Path) -> None:
    """Without public records the page says why, and an older drawing disappears."""
    stale = tmp_path / "figures" / "curves.svg"
    stale.parent.mkdir()
    stale.write_text("old")
    text = page.render(small(), tmp_path).read_text()
    assert "nobody else" in text
    assert not stale.exists()


def test_only_public_records_are_drawn() -> None:
    """A sample of anybody but volunteers or simulated clients is refused."""
    with pytest.raises(InternalError, match="not public"):
        dataclasses.replace(make_sample(), who="train")


def test_at_most_sixty_curves_are_drawn_and_means_use_all() -> None:
    """Large samples are thinned evenly by class."""
    from curvote.reporting.curves_figure import MOST_CURVES, drawn

    sample = make_sample(501)
    rows = [drawn(sample, k) for k in (0, 1)]
    assert sum(map(len, rows)) == MOST_CURVES
    assert all((sample.labels[r] == k).all() for k, r in enumerate(rows))


def test_study_and_real_release_are_never_confused(tmp_path: Path) -> None:
    """A study says that it protects nobody; a real release never says so."""
    study, real = small(), small(private=True)
    assert "protects nobody" in page.render(study, tmp_path / "a").read_text()
    text = page.render(real, tmp_path / "b").read_text()
    assert "protects nobody" not in text
    assert "real release" in text
    assert "--seed" not in text
    assert "No true error is known" in text


def test_how_often_none_passed_is_told() -> None:
    """Methods where it happened are listed, in percent for each epsilon."""
    expected = [
        (f"{method}, {learner}", ["0", "0", "48", "0"])
        for method in ("MRMA", "MA")
        for learner in LEARNERS
    ]
    assert words.none_passed(make_page()) == expected


def test_smoothing_keeps_mass_and_hides_the_lattice() -> None:
    """A ridge of 51 lattice points is smooth and holds every value in range."""
    values = np.random.default_rng(1).binomial(50, 0.5, 20_000) / 50
    x, density = figures.smooth(values)
    peaks = np.sum((density[1:-1] > density[:-2]) & (density[1:-1] > density[2:]))
    assert peaks == 1
    assert abs(x[density.argmax()] - 0.5) < 0.02
    mean = (x * density).sum() / density.sum()
    assert abs(mean - values.mean()) < 1e-3


def test_unfinished_file_is_never_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed rewrite leaves the older file as it was."""
    target = figures.write(tmp_path / "a.txt", b"whole")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        figures.write(target, b"half")
    assert target.read_bytes() == b"whole"
