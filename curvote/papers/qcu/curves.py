"""Curves of QCU's agreement against epsilon, figures 6 to 9 and 11 to 16, and costs.

The weights of the paper's network for digits are not published: this is another one.
"""

import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from curvote.base.entropy import SeededEntropy, SystemEntropy
from curvote.base.validate import FloatArray
from curvote.chain.measure import Look
from curvote.data.public.images import MNIST
from curvote.mechanisms.base import product_law
from curvote.papers.figure import Chart, PlotLine, draw_panels
from curvote.papers.qcu import laws, studies
from curvote.papers.qcu.studies import RobustModel, record_group, summarize_shares
from curvote.papers.reproduction import Evidence, load_columns
from curvote.papers.rows import (
    Row,
    beside_published,
    column_as_ours,
    percent,
    published_rows,
    select,
)
from curvote.pipeline.config.project import Project
from curvote.report import style
from curvote.systems.utility.method import profile

_OURS: Final = Look(style.INK, "", "-", 1.5)
_CLAIMED: Final = Look(style.INK, "", ":", 0.9, above=2)


def mechanism_lines(rows: Sequence[Row]) -> list[PlotLine]:
    """Return three lines a mechanism, of its hue, and what the legend says of them.

    A line is what curvote finds, marks are the printed draws, dots the printed bound.
    The legend gives the mechanism's name to its marks.
    """
    lines = []
    for name, look in laws.LOOKS.items():
        if inside := select(rows, method=name):
            for column, line in (
                ("claimed", replace(_CLAIMED, colour=look.colour)),
                ("curvote", replace(_OURS, colour=look.colour)),
                ("published", replace(look, line="")),
            ):
                lines.append(PlotLine(name, line, column_as_ours(inside, column)))
    return [
        *lines,
        PlotLine("curvote", _OURS, ()),
        PlotLine("printed draws", Look(style.INK, "o", ""), ()),
        PlotLine("printed lower bound", _CLAIMED, ()),
    ]


# Of all figures: a panel for each model and records.
figure = Chart(
    ["learner", "setting"],
    [mechanism_lines],
    "{}, {}".format,
    y="agreement (%)",
    where={"quantity": "agreement"},
)


@dataclass(frozen=True)
class Shares:
    """Shares of single records, (n,): as published, by our mechanism, and its bound."""

    paper: FloatArray
    ours: FloatArray
    bound: FloatArray


def model_rows(
    evidence: Evidence,
    figure: str,
    spent: float = 1.0,
    left_out: Container[str] = (),
    indicator: float | None = None,
) -> Iterator[Row]:
    """Yield the agreement by ``learner`` (model) and ``setting`` (the records).

    ``epsilon`` is that of each feature. z is missing for a worst record and for the
    Gaussian of the logistic models. ``entries.toml`` says what the options are.
    """
    shares_of: dict[tuple[Any, ...], Shares] = {}
    for line in studies.printed_curves(figure):
        # The average and the worst are of the same records.
        records, model = record_group(line["setting"]), line["learner"]
        place = model, records, line["method"], line["epsilon"]
        if place not in shares_of:
            robust_model = studies.analyze_setting(evidence.project, model, records)
            shares_of[place] = cell_shares(line, robust_model, spent, left_out)
        yield cell_row(line, shares_of[place])
        if indicator is not None and line["method"] != "gaussian":
            share = float(shares_of[place].paper.mean())
            names = {n: line[n] for n in ("setting", "learner", "method", "epsilon")}
            behind = percent(indicator + (1 - indicator) * share)
            yield names | {"quantity": "indicator", "curvote": behind}


def cell_shares(
    line: Row,
    robust_model: RobustModel,
    spent: float = 1.0,
    left_out: Container[str] = (),
) -> Shares:
    """Return the shares of all records of a printed cell."""
    law = laws.paper_law(line["method"], line["epsilon"], spent=spent)
    channel = laws.our_channel(line["method"], line["epsilon"])
    redraws = line["method"] != "gaussian" or line["learner"] not in left_out
    surface, values = robust_model.surface, robust_model.values
    return Shares(
        laws.printed_agreement(surface, values, law, redraws=redraws),
        laws.agreement(surface, channel),
        profile.certified_bound(channel, values, robust_model.box),
    )


def cell_row(line: Row, shares: Shares) -> Row:
    """Return the row of a printed cell.

    z is by the standard error of all printed draws, of each record its own.
    """
    setting, paper = line["setting"], shares.paper
    error = float(np.sqrt(np.sum(paper * (1 - paper)) / line["draws"])) / len(paper)
    vague = line["method"] == "gaussian" and line["learner"].endswith("logistic")
    untold = vague or setting.startswith("worst") or error == 0
    return line | {
        "curvote": summarize_shares(setting, paper),
        "corrected": summarize_shares(setting, shares.ours),
        "bound": summarize_shares(setting, shares.bound),
        "z": None if untold else (float(paper.mean()) - line["empirical"]) / error,
    }


model_terminal_rows = partial(select, quantity="agreement")


def _gap(row: Row) -> float:
    return float(abs(row["curvote"] - row["published"]))


def model_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the distance of printed draws, and how often bounds fail."""
    agreements = select(rows, quantity="agreement")
    scored = [row for row in agreements if row["z"] is not None]
    near = sum(abs(row["z"]) <= 3 for row in scored)
    yield f"{near} of {len(scored)} cells within 3 standard errors of the printed draws"
    far = max(agreements, key=_gap)
    names = ", ".join(far[name] for name in ("learner", "setting", "method"))
    place = f"{names}, epsilon {far['epsilon']:g}"
    yield f"largest difference: {_gap(far):.2f} points ({place})"
    above = sum(row["claimed"] > row["curvote"] for row in agreements)
    yield (
        f"the printed lower bound is above the exact value in {above} of"
        f" {len(agreements)}"
    )
    over = sum(row["bound"] > row["corrected"] + 1e-9 for row in agreements)
    yield f"ours lies above it in {over}"
    # The distance of the printed Gaussian, for each panel.
    for model, setting in dict.fromkeys(
        (r["learner"], r["setting"]) for r in agreements
    ):
        panel = {"learner": model, "setting": setting, "method": "gaussian"}
        if gaps := list(map(_gap, select(agreements, **panel))):
            yield f"gaussian, {model}, {setting}: within {max(gaps):.2f} points"
    if len(agreements) < len(rows):
        yield (
            "indicator: with probability .1 the record itself would be sent. The paper"
            " does so; curvote has no such mechanism"
        )


SIDE: Final = 7
DIGIT_DRAWS: Final = 3000
SEED: Final = 20240801


def digit_rows(evidence: Evidence, figure: str) -> Iterator[Row]:
    """Yield the agreement by ``setting`` (the images) and ``method``, in draws.

    ``se`` is that of curvote's own draws. There is no z: the networks differ.
    """
    from sklearn.neural_network import MLPClassifier

    images, digits = read_images(evidence.project)
    # Two small layers, fitted on all images but a tenth.
    model = MLPClassifier((64, 32), early_stopping=True, random_state=SEED)
    model.fit(images, digits)
    shares_of: dict[tuple[Any, ...], tuple[FloatArray, FloatArray]] = {}
    for line in studies.printed_curves(figure):
        setting = line["setting"]
        place = record_group(setting), line["method"], line["epsilon"]
        if place not in shares_of:
            some = studies.select_records(images, place[0])
            shares_of[place] = drawn_agreements(model, some, *place[1:])
        paper, ours = shares_of[place]
        error = float(np.sqrt(np.sum(paper * (1 - paper)) / DIGIT_DRAWS)) / len(paper)
        yield line | {
            "curvote": summarize_shares(setting, paper),
            "corrected": summarize_shares(setting, ours),
            "se": None if setting.startswith("worst") else percent(error),
        }


def read_images(project: Project) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the training images, (n, 49) in [0, 1], and their digits."""
    settings = {"classes": "all", "part": "train", "side": SIDE}
    parameters = MNIST.Parameters.model_validate(settings)
    columns = load_columns(project, MNIST, parameters)
    return columns["curve"] / 255, columns["label"]


def drawn_agreements(
    model: Any, images: FloatArray, name: str, epsilon: float
) -> tuple[FloatArray, FloatArray]:
    """Return the share of draws that keep each image's answer, (n,) twice.

    The first by the printed law, the second by our mechanism.
    """
    clean = np.repeat(model.predict(images), DIGIT_DRAWS)
    many = np.repeat(images, DIGIT_DRAWS, axis=0)
    law = laws.paper_law(name, epsilon)
    channel = laws.our_channel(name, epsilon, images.shape[1])
    paper = model.predict(law.draw(many, np.random.default_rng(SEED))) == clean
    ours = model.predict(channel.draw(many, SeededEntropy(SEED))) == clean
    shape = len(images), DIGIT_DRAWS
    return paper.reshape(shape).mean(axis=1), ours.reshape(shape).mean(axis=1)


def digit_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the agreement at epsilon 1 a pixel, and the mechanisms' order."""
    for row in select(rows, method="pm_01", epsilon=1.0):
        text = f"{row['setting']}: {row['curvote']:.1f}, printed {row['published']:.1f}"
        yield f"  pm_01, epsilon 1 a pixel ({SIDE**2} in all), {text}"
    cells = dict.fromkeys((row["setting"], row["epsilon"]) for row in rows)
    same = 0
    for setting, epsilon in cells:
        inside = select(rows, setting=setting, epsilon=epsilon)
        printed, ours = (
            max(inside, key=lambda row: float(row[column]))["method"]
            for column in ("published", "curvote")
        )
        same += ours == printed
    order = f"{same} of {len(cells)}"
    yield f"the mechanism that is printed first is first here in {order} cells"


MODEL, RECORD, EPSILON = "stroke-logistic", "age 79", 2.0
DRAWS: Final = 2000
TESTS: Final = 7  # of a radius to .01
_REPEATS: Final = 7
EMPIRICAL, THEORETICAL = "2000 draws", "theoretical"
EXACT, BOUND, SURFACE = "exact", "bound", "surface, once"
TIMES, QUERIES = "milliseconds", "queries"
TIMED: Final = ("pm_01", "exponential", "laplace")


def cost_rows(evidence: Evidence) -> Iterator[Row]:
    """Yield times and queries by ``setting`` (the value) and ``method``.

    ``group`` is "milliseconds", the median of seven on this machine, or "queries".
    """
    robust_model = studies.analyze_setting(evidence.project, MODEL, RECORD)
    rows = []

    def add(group: str, setting: str, value: float, method: str | None = None) -> None:
        names = {"group": group, "setting": setting, "method": method}
        base = {"learner": MODEL, "quantity": "value", "curvote": float(value)}
        rows.append(base | names)

    surface = partial(studies.answer_surface, robust_model.question)
    add(TIMES, SURFACE, _median_milliseconds(surface))
    for mechanism in TIMED:
        for setting, make in _computations(robust_model, mechanism).items():
            add(TIMES, setting, _median_milliseconds(make), mechanism)
    test = profile.query_count()
    add(QUERIES, "a test as published", test)
    add(QUERIES, "a radius as published", TESTS * test)
    right = TESTS * profile.query_count(profile.OMEGA / TESTS)
    add(QUERIES, "a radius at the stated risk", right)
    add(QUERIES, EMPIRICAL, DRAWS)
    add(QUERIES, f"{EXACT}, {BOUND}", int(robust_model.box.queries.sum()))
    printed = published_rows("qcu", "qcu_text.csv", figure="table 2")
    return beside_published(rows, printed)


def _computations(
    robust_model: RobustModel, mechanism: str
) -> dict[str, Callable[[], object]]:
    law = laws.paper_law(mechanism, EPSILON)
    channel = laws.our_channel(mechanism, EPSILON)
    values, box = robust_model.values, robust_model.box

    def theoretical() -> object:
        return product_law(*map(law.law, values.T)).box(box.low, box.high)

    return {
        EMPIRICAL: lambda: drawn_agreement(robust_model, mechanism),
        THEORETICAL: theoretical,
        BOUND: lambda: profile.certified_bound(channel, values, box),
        EXACT: lambda: laws.agreement(robust_model.surface, channel),
    }


def drawn_agreement(robust_model: RobustModel, name: str) -> float:
    """Return the share of draws of our mechanism whose answer is the record's."""
    question, channel = robust_model.question, laws.our_channel(name, EPSILON)
    many, places = np.repeat(question.records[:1], DRAWS, axis=0), question.sensitive
    many[:, list(places)] = channel.draw(many[:, list(places)], SystemEntropy())
    clean = question.model.predict(question.records[:1])
    return float(np.mean(question.model.predict(many) == clean))


def _median_milliseconds(make: Callable[[], object]) -> float:
    took = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        make()
        took.append(1000 * (time.perf_counter() - start))
    return median(took)


def cost_figure(rows: Sequence[Row], _: Evidence) -> Figure:
    """Draw printed and measured times on a logarithmic axis."""
    ticks = (0.1, 1, 10, 100, 1000)

    def draw(ax: Axes, name: str) -> None:
        for column, marker, colour, label in (
            ("published", "s", "#a9b0b8", "printed"),
            ("curvote", "o", "#0072b2", "curvote"),
        ):
            cells = [row for row in select(rows, method=name) if row[column]]
            points = [row[column] for row in cells], [row["setting"] for row in cells]
            ax.plot(*points, ls="", marker=marker, color=colour, label=label)
        ax.set_xscale("log")
        ax.set_xlim(0.05, 2000)
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set_xlabel(TIMES)
        ax.grid(axis="x")

    return draw_panels(TIMED, draw, 2.6)


def cost_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the numbers of queries behind the printed .24 ms."""
    (test,) = select(rows, setting="a test as published")
    (radius,) = select(rows, setting="a radius as published")
    (printed,) = select(rows, setting=THEORETICAL, method="pm_01")
    yield (
        f"behind {printed['published']:.2f} ms stand {test['curvote']:,.0f}"
        f" queries a test and {radius['curvote']:,.0f} a radius, before any box"
    )
    for name in TIMED:
        (exact,) = select(rows, method=name, setting=EXACT)
        yield f"{name}: the exact agreement takes {exact['curvote']:.2f} ms"
