"""Score rows as the pipelines of `reproduce` would give them, made up."""

import json
import math
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from curvote.papers.mrma.figures import USEFUL
from curvote.papers.registry import reproductions
from curvote.papers.reproduction import Entry, Evidence
from curvote.papers.rows import COLUMNS, Row, published_rows, to_json
from curvote.pipeline.config.project import Project
from tests.report_data import PROGRESS

NOWHERE = Project(Path("nowhere"))


def entries_of(paper: str) -> dict[str, Entry]:
    """The entries of one paper ("dtk"), by name."""
    entries = reproductions().items()
    return {name: one for name, one in entries if one.package.endswith(f".{paper}")}


def evidence(name: str, summaries: Iterable[Row] = (), **found: Any) -> Evidence:
    """What the runs of an entry found: made-up score rows, and what else is given."""
    return Evidence(reproductions()[name], NOWHERE, list(summaries), **found)


def comparison(name: str, summaries: Iterable[Row] = ()) -> list[Row]:
    """The rows of an entry from made-up score rows."""
    return reproductions()[name].rows(evidence(name, summaries))


def check_rows(name: str, rows: list[Row]) -> None:
    """Rows have all columns, a value, no NaN, a name of their own; lines show them."""
    rows = json.loads(to_json(rows))
    assert rows
    assert all(list(one) == list(COLUMNS) for one in rows)
    assert all(
        one["curvote"] is not None or one["published"] is not None for one in rows
    )
    names = COLUMNS[: COLUMNS.index("published")]
    assert len({tuple(one[n] for n in names) for one in rows}) == len(rows)
    lines, columns = reproductions()[name].laid_out(rows)
    assert 0 < len(lines) <= len(rows)
    assert {column for line in lines for column in line} <= set(columns)


def svg(name: str, rows: list[Row], found: Evidence | None = None) -> str:
    """The drawing of an entry as text."""
    entry = reproductions()[name]
    return entry.draw(rows, found or evidence(name), "svg")["svg"].decode()


LEARNERS = ("logistic", "svm", "dwd", "cg")
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)


def row(
    pipeline: str,
    method: str,
    value: float,
    metric: str = "misclassification",
    **given: Any,
) -> dict[str, Any]:
    """One score row; ``value`` in [0, 1]."""
    plain = {
        "pipeline": pipeline,
        "protocol": "mrma",
        "epsilon": None,
        "learner": None,
        "method": method,
        metric: value,
        "metric": metric,
        "value": value,
        "se": 0.002,
        "replicates": 40,
        "none_passed": 0.0,
    }
    return plain | given


def table(name: str, file: str, shift: float = 0.001) -> list[dict[str, Any]]:
    """Both forms of every cell of a printed table, the published one off by shift."""
    rows = []
    for key in published_rows("mrma", file):
        axes = {n: str(key[n]) for n in ("d", "representation") if key.get(n)}
        others = {n: key[n] for n in ("epsilon", "learner") if n in key}
        own = f"{name}-initial" if axes.get("representation") == "initial" else name
        if own != name:
            axes = {}
        for form, extra in (("published", shift), ("corrected", -0.05)):
            value = key["misclassification_pct"] / 100 + extra
            setting = {"form": form, **axes}
            method = str(key.get("method", "clean"))
            rows.append(row(own, method, value, setting=setting, **others))
    return rows


def by_method(
    name: str, learners: tuple[str, ...] = LEARNERS
) -> Iterator[dict[str, Any]]:
    """Error by method, learner and epsilon."""
    for epsilon in EPSILONS:
        for learner, method in product(learners, PROGRESS):
            value = 0.5 - 0.4 * _learnt(epsilon, PROGRESS[method][1], learner)
            yield row(name, method, value, epsilon=epsilon, learner=learner)
        yield row(name, "majority", 0.48, epsilon=epsilon)
        yield row(name, "histogram", 0.49, epsilon=epsilon)


def _learnt(epsilon: float, skill: float, learner: str = "cg") -> float:
    slow = 1 + 0.15 * sum(learner.encode()) % 1
    return math.tanh(skill * epsilon / slow) ** 1.5


def servers() -> Iterator[dict[str, Any]]:
    """Error by split, group, learner and epsilon, own and shared classifiers."""
    skills = {"clients": 0.8, "budget": 0.4, "single": 0.25}
    for split, group, learner, epsilon in product(
        skills, ("1", "2", "3", USEFUL), LEARNERS, EPSILONS
    ):
        part = _learnt(epsilon, skills[split], learner)
        wrong = 0.5 if group == "2" else 0.49 - 0.35 * part - 0.01 * (group == "3")
        named = {"setting": {"split": split}, "group": group, "learner": learner}
        for method in ("mrma", "federated", "weak"):
            off = 0.0 if (method == "mrma") == (split == "single") else 0.07
            yield row("figure-3", method, wrong + off, epsilon=epsilon, **named)


def cases(
    name: str, labels: str, learners: tuple[str, ...], methods: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Error by case, learner, method and epsilon."""
    for case, learner, method, epsilon in product(labels, learners, methods, EPSILONS):
        part = _learnt(epsilon, PROGRESS[method][1] + 0.04 * int(case), learner)
        named = {"setting": {"case": case}, "learner": learner, "epsilon": epsilon}
        yield row(name, method, 0.5 - 0.4 * part, **named)


def encodings() -> Iterator[dict[str, Any]]:
    """Error of one classifier by representation, with and without noise."""
    for kind, learner, epsilon in product(
        ("tanh", "max_abs"), LEARNERS, (*EPSILONS, None)
    ):
        clean = epsilon is None
        named = {"setting": {"representation": kind}, "learner": learner}
        yield row(
            "figure-a1-clean" if clean else "figure-a1",
            "clean" if clean else "weak",
            0.11 if clean else 0.5 - 0.38 * _learnt(epsilon or 0, 0.3, learner),
            epsilon=epsilon,
            **named,
        )


def found(name: str, rows: list[dict[str, Any]], n: int = 30) -> Evidence:
    """Values of single replicates around the rows', and a configuration."""
    draw = np.random.default_rng(3)
    names = ("representation", "epsilon", "learner", "method")
    parts = [
        pd.DataFrame({name: [one[name]] * n for name in names}).assign(
            epsilon=lambda part: part["epsilon"].astype(float),
            value=draw.normal(one["curvote"] / 100, 0.04, n).clip(0, 1),
        )
        for one in rows
    ]
    config = {"privatize": {"label_share": "equal"}, "source": {"slope": 4.0}}
    replicates = pd.concat(parts, ignore_index=True)
    return evidence(name, replicates=replicates, configs=[config])


def agreement() -> Iterator[dict[str, Any]]:
    """How often labels agree at z0, by epsilon."""
    for z0, epsilon in product(np.linspace(-2, 2, 9), (10.0, 1.0, 0.1, 0.01)):
        value = 0.5 + 0.25 * math.tanh(epsilon) * min(1.0, abs(z0))
        named = {"setting": {"z0": f"{z0:g}"}, "epsilon": epsilon}
        yield row("figure-1", "report", value, metric="agreement", **named)


def told_apart() -> Iterator[dict[str, Any]]:
    """How far reports and values are apart, by d and epsilon."""
    from curvote.advise.mrma import total_variation

    for d, epsilon in product((1, 2, 5, 10), (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0)):
        value = total_variation(d, epsilon)
        named = {"setting": {"d": str(d)}, "epsilon": epsilon}
        yield row("figure-a6", "report", value, metric="total_variation", **named)


# Protocol, learner, method and skill of what competes.
CONTESTANTS = (
    ("auto", None, "two", 1.4),
    ("direct", None, "two", 1.4),
    ("votes", None, "votes", 0.9),
    ("votes", None, "best_single", 0.5),
    *(("mrma", "logistic", method, PROGRESS[method][1]) for method in PROGRESS),
    *(("mrma", "centroid", method, 0.8 * PROGRESS[method][1]) for method in PROGRESS),
    ("mrma", None, "histogram", 0.1),
    ("mrma sampled", "centroid", "mrma", 0.7),
    ("mrma sampled", "centroid", "weak", 0.2),
    ("mrma sampled", None, "histogram", 0.1),
    ("mrma_privunit", None, "mrma", 0.6),
    ("mrma_privunit", None, "ma", 0.5),
)
CONTEST_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)


def contest() -> Iterator[dict[str, Any]]:
    """Error by setting, protocol and epsilon, and the majority beside each protocol.

    `auto` guesses at the least epsilon, and learns nothing in the last setting.
    """
    labels = dict.fromkeys([*(label for label, *_ in CONTESTANTS), "majority"])
    for rank, pipeline in enumerate(reproductions()["beyond"].pipelines):
        guess, floor = 0.5 - 0.04 * rank, 0.05 + 0.01 * rank
        for label, epsilon in product(labels, CONTEST_EPSILONS):
            for own, learner, method, skill in CONTESTANTS:
                learnt = math.tanh(skill * epsilon) * ((label, rank) != ("auto", 9))
                value = guess + 0.02 - (guess - floor) * learnt
                if label == own and (label, epsilon) != ("auto", CONTEST_EPSILONS[0]):
                    yield _of(label, pipeline, method, value, epsilon, learner)
            yield _of(label, pipeline, "majority", guess, epsilon)
        yield _of("clean", pipeline, "clean", floor, None, "logistic")


def _of(
    label: str,
    pipeline: str,
    method: str,
    value: float,
    epsilon: float | None,
    learner: str | None = None,
) -> dict[str, Any]:
    given = {"protocol": label, "setting": {"protocol": label}, "learner": learner}
    return row(pipeline, method, value, epsilon=epsilon, se=0.02 * value, **given)


# Their rows come from single replicates, or from published curves.
WITHOUT_SUMMARIES = {"figure-a2", "figure-a7", "figure-a8"}
SUMMARIES = {
    "table-1": lambda: table("table-1", "mrma_table1_diabetes.csv"),
    "table-2": lambda: table("table-2", "mrma_table2_employee.csv"),
    "table-a1": lambda: table("table-a1", "mrma_tableA1_encoding.csv"),
    "figure-1": agreement,
    "figure-2": lambda: by_method("figure-2"),
    "figure-3": servers,
    "figure-4": lambda: by_method("figure-4"),
    "figure-5": lambda: by_method("figure-5"),
    "figure-a1": encodings,
    "figure-a6": told_apart,
    "cases-a2": lambda: cases("cases-a2", "12345", LEARNERS, ("ma", "mrma")),
    "beyond": contest,
    "cases-a3": lambda: cases("cases-a3", "5678", ("cg",), ("weak", "mrma")),
}


def summaries(name: str) -> list[dict[str, Any]]:
    """The made-up score rows of one reproduction."""
    return list(SUMMARIES[name]())
