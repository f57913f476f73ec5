"""Entries of MRMA: printed numbers beside curvote's, files, terminal text."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from curvote.base.errors import UserError
from curvote.messages.measures import NONE_PASSED
from curvote.papers import reproduction
from curvote.papers import rows as words
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import Row, complete_rows, distinct_values, percent, select
from curvote.pipeline.config import settings
from curvote.pipeline.config.project import Project
from curvote.pipeline.run.results import missing_to_none
from curvote.pipeline.store.records import RunRecord
from curvote.report import data
from curvote.systems.common.settings import Representation


@dataclass(frozen=True)
class MrmaEntry(reproduction.Reproduction):
    """One table or figure of MRMA, or a contest of protocols.

    In a ``contest`` each pipeline is a setting in which protocols compete. ``figure``
    ("module:function") is what draws it in this package; ``published`` is a file of
    printed numbers; ``methods`` are shown, all where it is empty. A cell agrees whose
    ``|z|`` is at most ``limit``: 3, times sqrt(2) where the paper prints no standard
    deviation and its error is taken to be like ours; or whose difference is at most the
    ``points`` of its learner, where the paper leaves open what was fitted.
    """

    figure: str
    published: str | None = None
    _: KW_ONLY
    paper: str = "MRMA"
    methods: tuple[str, ...] = ()
    contest: bool = False
    limit: float = 3.0
    points: Mapping[str, float] = field(default_factory=dict)


TableEntry = partial(MrmaEntry, replicates=500, figure="figures:table_figure")
MethodEntry = partial(MrmaEntry, replicates=200, figure="figures:method_figure")
CaseEntry = partial(MrmaEntry, replicates=200, figure="figures:case_figure")

_ALL = (
    TableEntry(
        name="table-1",
        title="Table 1: diabetes",
        published="mrma_table1_diabetes.csv",
    ),
    TableEntry(
        name="table-2",
        title="Table 2: employee attrition",
        published="mrma_table2_employee.csv",
    ),
    TableEntry(
        name="table-a1",
        title="Table A.1: encodings without noise",
        published="mrma_tableA1_encoding.csv",
        runs=("table-a1", "table-a1-initial"),
        limit=3 * 2**0.5,
        points={"logistic": 0.6, "svm": 1.5, "dwd": 0.6, "cg": 0.6},
    ),
    MrmaEntry(
        "figure-1",
        "Figure 1: what noise on z does to the weight omega",
        200,
        "figures:weight_figure",
        methods=("agreement",),
        quantity="value",
        measured="agreement g in %",
    ),
    MethodEntry(name="figure-2", title="Figure 2: simulated curves, one server"),
    MrmaEntry(
        "figure-3",
        "Figure 3: simulated curves, 25 servers",
        40,
        "figures:split_figure",
        methods=("federated", "mrma"),
    ),
    MethodEntry(name="figure-4", title="Figure 4: physical activity"),
    MethodEntry(name="figure-5", title="Figure 5: phonemes"),
    MrmaEntry(
        "figure-a1",
        "Figure A.1: one classifier of 500 reports",
        200,
        "figures:box_figure",
        methods=("weak", "clean"),
        runs=("figure-a1", "figure-a1-clean"),
    ),
    MrmaEntry(
        "figure-a6",
        "Figure A.6: total variation between values and their reports",
        200,
        "figures:variation_figure",
        methods=("total_variation",),
        quantity="value",
        measured="total variation in %",
    ),
    CaseEntry(
        name="cases-a2",
        title="Table A.2: five ways to divide the clients",
        methods=("ma", "mrma"),
    ),
    CaseEntry(
        name="cases-a3",
        title="Table A.3: more clients for the weak classifiers",
        methods=("weak", "mrma"),
    ),
    MrmaEntry(
        "beyond",
        "Our protocols and the published ones",
        100,
        "contest:figure",
        runs=(
            "beyond-simulated",
            "beyond-off-dominant",
            "beyond-unbalanced",
            "beyond-phonemes",
            "beyond-diabetes",
            "beyond-diabetes-distinct",
            "beyond-employee",
            "beyond-employee-distinct",
            "beyond-nhanes-2003",
            "beyond-stroke",
        ),
        contest=True,
    ),
)
REPRODUCTIONS = {entry.name: entry for entry in _ALL}


_VALUES = ("misclassification_pct", "sd")
_NUMBERS = {"epsilon": float, "d": int}
REPETITIONS = 500

Key = tuple[tuple[str, str | float | None], ...]


@dataclass(frozen=True)
class PrintedCell:
    """One printed cell: what names it, its value in percent and its variance.

    ``variance`` is that of the printed mean over 500 repetitions, in squared percent
    points; 0 where the table prints no standard deviation.
    """

    key: Key
    percent: float
    variance: float


def printed_cells(file: str) -> list[PrintedCell]:
    """Return the cells of one file of ``published/``, in its order."""
    return [_parse_cell(row) for row in words.published_rows("mrma", file)]


def printed_cases() -> dict[str, dict[str, str]]:
    """Return the sizes (N, N0, N1, n0, n1, B, r0) of Tables A.2 and A.3 by case."""
    return {
        row.pop("case"): row
        for row in words.published_rows("mrma", "mrma_cases_A2_A3.csv")
    }


def _parse_cell(row: dict[str, str]) -> PrintedCell:
    named = {name: text for name, text in row.items() if name not in _VALUES}
    key = tuple((n, _NUMBERS.get(n, str)(t) if t else None) for n, t in named.items())
    variance = (100 * float(row.get("sd") or 0)) ** 2 / REPETITIONS
    return PrintedCell(key, float(row["misclassification_pct"]), variance)


# Axes of a grid with a meaning of their own; the others make up ``setting``.
_OWN_AXES = (settings.PROTOCOL, "form", "d", "representation", "split")
USEFUL = "useful"
_ERROR = "misclassification"
_GROUPS = (None, USEFUL, "1", "2", "3")
_PLACES = ("representation", "d", "learner", "split", "method", "setting")
_CONTEST = ("setting", "protocol", "learner", "method")


def comparison(name: str, summaries: Iterable[Row]) -> list[Row]:
    """Return the rows of `reproduce NAME` from the score rows of its pipelines.

    ``summaries`` are rows of `curvote.pipeline.run.results.mean_scores` and of
    `evidence`, value and se in [0, 1]. The result has ``COLUMNS``; published, curvote,
    corrected and se are in percent points, se is curvote's. Where a value is printed,
    ``curvote`` follows the published definitions and ``corrected`` the right ones;
    elsewhere ``curvote`` follows the right ones. z = (curvote - published) /
    sqrt(se^2 + (100 sd)^2 / 500), None where nothing is printed or no error is known.
    In a contest ``setting`` is the pipeline without the contest's name, and the
    majority stands once: what every protocol brings beside itself is left out.

    Raises:
        UserError: a printed cell that the pipelines do not compute.
    """
    entry = REPRODUCTIONS[name]
    rows = [_summary_row(entry, summary) for summary in summaries]
    selected = [row for row in rows if _is_selected(entry, row)]
    if entry.published:
        cells = printed_cells(entry.published)
        return complete_rows(_compare_cell(entry, cell, selected) for cell in cells)
    if entry.contest:
        # Without the majority, unless it stands alone.
        cells_met = {_cell_key(row) for row in selected if row["method"] != "majority"}
        protocols = (
            row
            for row in selected
            if row["method"] != "majority" or _cell_key(row) not in cells_met
        )
        return complete_rows(_sort_rows(protocols, _CONTEST))
    return complete_rows(
        _sort_rows(row for row in selected if row["form"] != "published")
    )


def count_agreeing(entry: MrmaEntry, rows: Iterable[Row]) -> tuple[int, int]:
    """Return how many printed cells agree, and how many there are."""
    scored = [row for row in rows if row["z"] is not None]
    return sum(_agrees(entry, row) for row in scored), len(scored)


def _agrees(entry: MrmaEntry, row: Row) -> bool:
    points = entry.points.get(row["learner"], 0.0)
    close = abs(row["curvote"] - row["published"]) <= points
    return bool(close or abs(row["z"]) <= entry.limit)


def _summary_row(entry: MrmaEntry, summary: Row) -> Row:
    axes = summary.get("setting", {})
    representation = axes.get("representation", summary.get("representation"))
    names = {name: summary[name] for name in ("pipeline", "protocol", "epsilon")}
    metric = str(summary["metric"])
    pipeline = summary["pipeline"]
    if pipeline == "table-a1-initial":
        representation = "initial"
    prefix = [pipeline.removeprefix(f"{entry.name}-")] if entry.contest else []
    axis_texts = (
        f"{axis}={text}" for axis, text in axes.items() if axis not in _OWN_AXES
    )
    return names | {
        "form": axes.get("form"),
        "setting": (" ".join([*prefix, *axis_texts]) or None),
        "learner": summary["learner"],
        "representation": representation,
        "d": int(axes["d"]) if "d" in axes else summary.get("d"),
        "method": (str(summary["method"]) if metric == _ERROR else metric),
        "split": axes.get("split"),
        "group": summary.get("group"),
        "quantity": entry.quantity,
        "published": None,
        "curvote": percent(summary["value"]),
        "corrected": None,
        "se": percent(summary["se"]),
        "z": None,
    }


def _is_selected(entry: MrmaEntry, row: Row) -> bool:
    if row["split"]:
        final = "mrma" if row["split"] == "single" else "federated"
        return bool(row["group"]) and row["method"] == final
    return not entry.methods or row["method"] in entry.methods


def _cell_key(row: Row) -> tuple[str | float | None, ...]:
    return row["setting"], row["protocol"], row["epsilon"]


def _compare_cell(entry: MrmaEntry, cell: PrintedCell, rows: list[Row]) -> Row:
    """Return the row of a printed cell beside curvote's value."""
    forms = {row["form"]: row for row in select(rows, **dict(cell.key))}
    if not forms:
        named = ", ".join(f"{name} {value}" for name, value in cell.key)
        raise UserError(
            f"{entry.name} prints a value for {named}, which pipeline"
            f" {' or '.join(entry.pipelines)} does not compute; take your own of that"
            " name out of pipelines.yaml."
        )
    match = forms.get("published") or next(iter(forms.values()))
    right = forms.get("corrected") if "published" in forms else None
    total = None if match["se"] is None else match["se"] ** 2 + cell.variance
    difference = match["curvote"] - cell.percent
    return match | {
        "published": cell.percent,
        "corrected": right and right["curvote"],
        "z": difference / math.sqrt(total) if total else None,
    }


def _sort_rows(rows: Iterable[Row], places: Sequence[str] = _PLACES) -> list[Row]:
    """Sort by group, then by what tells lines apart, as it came; epsilon is last."""
    listed = list(rows)
    # Places by first appearance; rows without a value are last.
    ranks: dict[str, dict[Any, float]] = {
        name: {v: rank for rank, v in enumerate(distinct_values(listed, name))}
        for name in places
    }
    ranks["method"] = {name: rank for rank, name in enumerate(data.methods_by_name())}

    def sort_key(row: Row) -> tuple[float, ...]:
        return (
            _GROUPS.index(row["group"]),
            *(ranks[name].get(row[name], math.inf) for name in places),
            math.inf if row["epsilon"] is None else row["epsilon"],
        )

    return sorted(listed, key=sort_key)


# Group 2's slopes point anywhere: nothing can be learnt there.
USEFUL_GROUPS = ("1", "3")
_CELL = ["protocol", "setting", "epsilon", "learner", "method", "metric"]


def mrma_evidence(project: Project, records: Iterable[RunRecord]) -> Evidence:
    """Return what the completed runs of a reproduction's pipelines found.

    Its score rows have the `useful_group_rows` ones among them, and what each setting
    states.
    """
    gathered = reproduction.collect_evidence(project, records, _refine_rows)
    return replace(gathered, replicates=_error_scores(gathered.replicates))


def _error_scores(table: pd.DataFrame) -> pd.DataFrame:
    return table[~table["metric"].isin([NONE_PASSED.name])]


def _refine_rows(record: RunRecord, rows: list[Row], table: pd.DataFrame) -> list[Row]:
    labels = settings.labels_by_setting(record.config)
    useful = useful_group_rows(record.pipeline, _error_scores(table), labels)
    rows_of = _stated_settings(record.config)
    return [
        row | rows_of[settings.setting_name(row.get("setting", {}))]
        for row in (*rows, *useful)
    ]


def _stated_settings(config: dict[str, Any]) -> dict[str | None, Row]:
    """Return the rescaling and the size that each setting states, by its name."""
    rows_of = {}
    for labels, section in settings.expand_settings(config):
        project = Representation.model_validate(section["project"])
        size = {"representation": project.rescale, "d": project.size}
        rows_of[settings.setting_name(labels)] = size
    return rows_of


def useful_group_rows(
    pipeline: str, table: pd.DataFrame, labels: reproduction.Labels
) -> Iterator[Row]:
    """Yield a score row for each cell: the mean over the useful groups.

    Groups are averaged in each replicate, so that the se of this mean knows that they
    heard of the same classifiers. Without groups there is no row.
    """
    useful_rows = table[table["group"].isin(USEFUL_GROUPS)]
    for names, cell in useful_rows.groupby(_CELL, dropna=False, sort=False):
        # The mean over groups of the mean over their servers, by replicate.
        groups = cell.groupby(["replicate", "group"])["value"].mean()
        means = groups.groupby("replicate").mean()
        se = None if len(means) < 2 else float(means.std(ddof=1) / np.sqrt(len(means)))
        named = dict(zip(_CELL, map(missing_to_none, names), strict=True))
        yield named | {
            "pipeline": pipeline,
            "setting": labels[named["setting"]],
            "group": USEFUL,
            "value": float(means.mean()),
            "se": se,
        }


def draw_entry(
    name: str,
    rows: Sequence[Row],
    *kinds: str,
    evidence: Evidence | None = None,
) -> dict[str, bytes]:
    """Return the figure of an entry as ``svg``, ``png``.

    ``rows`` as `comparison` gives them; ``evidence`` is what they come from. Boxes need
    it, and curves of theory, which follow the runs' configuration.
    """
    module, _, function = REPRODUCTIONS[name].figure.partition(":")
    draw = getattr(import_module(f"curvote.papers.mrma.{module}"), function)
    return reproduction.draw_files(name, draw, rows, *kinds, evidence=evidence)


def compare(
    project: Project, name: str, records: Iterable[RunRecord]
) -> tuple[list[Row], list[Path]]:
    """Return the rows of `reproduce NAME` from completed runs, and the files written.

    They stand in the folder ``reproduce`` of the reports of the pipeline ``name``.
    """
    gathered = mrma_evidence(project, records)
    rows = comparison(name, gathered.summaries)
    return rows, write_entry(
        name, rows, reproduction.output_folder(project, name), gathered
    )


def write_entry(
    name: str,
    rows: Sequence[Row],
    folder: Path,
    evidence: Evidence | None = None,
) -> list[Path]:
    """Write comparison.csv, comparison.json and the figure; return their paths.

    A contest whose runs were ``evidence`` has a page as well, results.md.
    """
    extra_files = dict(draw_entry(name, rows, "svg", "png", evidence=evidence))
    if REPRODUCTIONS[name].contest and evidence and evidence.configs:
        from curvote.papers.mrma.contest import markdown

        seeds = {config["seed"] for config in evidence.configs}
        seed = seeds.pop() if len(seeds) == 1 else None
        page = markdown(rows, evidence.configs[0]["replicates"], seed)
        extra_files = {"results.md": page.encode()} | extra_files
    return reproduction.write_files(folder, name, rows, extra_files)


def agreement(name: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the conclusions: how many cells agree, and the worst ones."""
    entry = REPRODUCTIONS[name]
    if entry.contest:
        from curvote.papers.mrma import contest

        cells = contest.contest_cells(rows)
        yield ""
        yield from contest.count_verdicts(cells)
        yield from (f"lost: {contest.describe_cell(x)}" for x in cells if x.better)
        return
    inside, n_scored = count_agreeing(entry, rows)
    if n_scored:
        assumption = "" if entry.limit == 3 else ", the paper's taken to be like ours,"
        points = ", ".join(f"{name} {points}" for name, points in entry.points.items())
        close = f" or within so many points: {points}" if points else ""
        yield (
            f"\n{inside} of {n_scored} cells within 3 standard"
            f" errors{assumption}{close}"
        )
        worst = max(rows, key=_format_difference)
        place = words.column_texts(
            worst, words.varying_columns(rows, ("epsilon", *words.NAMES))
        )
        where = ", ".join(f"{name} {text}" for name, text in place.items() if text)
        yield f"largest difference: {_format_difference(worst):.2f} points ({where})"


def _format_difference(row: Row) -> float:
    return abs(float(row["curvote"] - row["published"]))


def laid_out(name: str, rows: Sequence[Row]) -> words.Lines:
    """Return a comparison as lines of text, and the shown columns.

    In a contest a line is what a protocol ends in; else as in all wings.
    """
    if not REPRODUCTIONS[name].contest:
        return words.laid_out(rows)
    from curvote.papers.mrma.contest import group_by_setting, table_lines

    columns = list(map(words.level_heading, words.column_levels(rows)))
    best_of = [
        {"setting": setting, "protocol": name, **dict.fromkeys(columns, "")}
        | {words.level_heading(row["epsilon"]): words.with_error(row) for row in line}
        for setting, setting_rows in group_by_setting(rows).items()
        for name, line in table_lines(setting_rows).items()
    ]
    return best_of, ["setting", "protocol", *columns]
