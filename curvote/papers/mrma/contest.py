"""Contest of protocols: cells where `auto` holds, the page of results, its figure."""

import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from jinja2 import Template
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from curvote.chain.measure import Look
from curvote.papers import figure
from curvote.papers.figure import PlotLine
from curvote.papers.mrma import figures
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import (
    Lines,
    Row,
    column_levels,
    distinct_values,
    level_heading,
    select,
    with_error,
)
from curvote.report import data, style

AUTO, PUBLISHED, MAJORITY = "auto", "mrma", "majority"
BEST_PUBLISHED = f"{PUBLISHED}, best other method"
# `auto` may be so much worse: points, or standard errors of the difference.
POINTS, ERRORS = 1.0, 2.0
# Nothing is promised at smaller epsilons, where hardly anything can be learnt.
REQUIRED_GAIN = 0.5
# Differences of equal counts of errors differ by rounding.
_ROUNDING = 1e-9
# What `auto` never takes unasked: other rules, and people whose records are public.
UNCHOSEN_PROTOCOLS = ("volunteers", "joined", "counts", "stump", "tree", "sgd")
# What a protocol ends in, whatever else it tells.
_FINAL = ("joined", "mrma", "votes", "mean", "joint", "two", "clean", "majority")
_RANKS = {method: rank for rank, method in enumerate(_FINAL)}
_BASELINE = "histogram"

refine = figures.refine


def protocols_rows(evidence: Evidence) -> list[Row]:
    """Return the rows of a contest, in which each pipeline is a setting.

    ``setting`` is the pipeline without the contest's name. The majority stands once:
    what every protocol brings beside itself is left out, unless it stands alone.
    """
    rows = list(figures.score_rows(evidence))
    for row in rows:
        setting = row["pipeline"].removeprefix(f"{evidence.entry.name}-")
        row["setting"] = " ".join(filter(None, (setting, row["setting"])))
    place = ("setting", "protocol", "epsilon")
    met = {tuple(row[n] for n in place) for row in rows if row["method"] != "majority"}
    without_copies = (
        row
        for row in rows
        if row["method"] != "majority" or tuple(row[n] for n in place) not in met
    )
    return figures.sort_rows(
        without_copies, ("setting", "protocol", "learner", "method")
    )


@dataclass(frozen=True)
class ContestCell:
    """The result of `auto` in a setting at one epsilon, and its rivals.

    ``rivals`` are the best published method and the majority, as far as they are there,
    ``better`` those that beat `auto` by more than the limit; ``ahead`` are the rows
    that do so of what it never takes by itself, the best first, and ``has_opt_in`` says
    whether there are any.
    """

    auto: Row
    rivals: tuple[Row, ...]
    better: list[Row]
    ahead: list[Row]
    has_opt_in: bool

    @property
    def verdict(self) -> str:
        """The verdict: ``best``, ``within`` the limit, or ``lost``."""
        if self.better:
            return "lost"
        first = all(self.auto["curvote"] <= rival["curvote"] for rival in self.rivals)
        return "best" if first else "within"

    @property
    def place(self) -> str:
        """The cell's setting and epsilon."""
        return f"{self.auto['setting']}, epsilon {self.auto['epsilon']:g}"

    @property
    def better_text(self) -> str:
        """What is better."""
        return f"better: {', '.join(map(_row_label, self.better)) or 'none'}"

    def __str__(self) -> str:
        return f"{self.place}: {_row_label(self.auto)}, {self.better_text}"


def is_beaten(row: Row, other: Row) -> bool:
    """Return whether ``other`` is better by 1 point and 2 standard errors.

    The errors are taken to be independent; one that is not known counts as 0.
    """
    error = math.hypot(row["se"] or 0.0, other["se"] or 0.0)
    limit = max(POINTS, ERRORS * error) + _ROUNDING
    return bool(row["curvote"] - other["curvote"] > limit)


def contest_cells(rows: Sequence[Row]) -> list[ContestCell]:
    """Return the cells of `auto` in the rows of a contest, epsilon rising."""
    cells = []
    for setting_rows in group_by_setting(rows).values():
        opt_in = [
            row
            for name in UNCHOSEN_PROTOCOLS
            for row in _final_rows(select(setting_rows, protocol=name))
        ]
        autos = [row for row in select(setting_rows, protocol=AUTO) if row["epsilon"]]
        for auto in sorted(_final_rows(autos), key=lambda row: float(row["epsilon"])):
            level_rows = select(setting_rows, epsilon=auto["epsilon"])
            majority = select(level_rows, protocol=MAJORITY)
            rivals = (*best_rows(select(level_rows, protocol=PUBLISHED)), *majority)
            unchosen = [r for r in opt_in if r["epsilon"] in {auto["epsilon"], None}]
            better, ahead = (
                [row for row in some if is_beaten(auto, row)]
                for some in (rivals, unchosen)
            )
            ahead.sort(key=lambda row: float(row["curvote"]))
            cells.append(ContestCell(auto, rivals, better, ahead, bool(unchosen)))
    return cells


def group_by_setting(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each setting in their order."""
    return {
        name: select(rows, setting=name) for name in distinct_values(rows, "setting")
    }


def best_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the row of least error at each epsilon, the first of equal ones."""
    levels: dict[float | None, Row] = {}
    for row in rows:
        leader = levels.setdefault(row["epsilon"], row)
        if row["curvote"] < leader["curvote"]:
            levels[row["epsilon"]] = row
    return list(levels.values())


def table_lines(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return a setting's rows of the table, by the name of their line.

    A line for each protocol and learner with what it ends in; after the published ones
    a line with the best of their other methods.
    """
    groups: dict[str, list[Row]] = {}
    for protocol in distinct_values(rows, "protocol"):
        protocol_rows = select(rows, protocol=protocol)
        ends = _final_rows(protocol_rows)
        for row in ends:
            groups.setdefault(_line_name(row), []).append(row)
        if protocol == PUBLISHED:
            groups[BEST_PUBLISHED] = best_rows(
                r for r in protocol_rows if r not in ends
            )
    return {name: line for name, line in groups.items() if line}


def _line_name(row: Row) -> str:
    """Return the name of a row's line: its protocol, and its learner if it has one."""
    return ", ".join(filter(None, (row["protocol"], row["learner"])))


def _final_rows(rows: Sequence[Row]) -> list[Row]:
    """Return each learner's final row of one protocol at each epsilon."""
    groups: dict[tuple[str | None, float | None], list[Row]] = {}
    for row in rows:
        if row["method"] != _BASELINE:
            groups.setdefault((row["learner"], row["epsilon"]), []).append(row)
    return [
        min(group, key=lambda row: _RANKS.get(row["method"], len(_FINAL)))
        for group in groups.values()
    ]


def protocols_lines(rows: Sequence[Row]) -> Lines:
    """Return the lines of the terminal, each what a protocol ends in."""
    columns = list(map(level_heading, column_levels(rows)))
    lines = [
        {"setting": setting, "protocol": name, **dict.fromkeys(columns, "")}
        | {level_heading(row["epsilon"]): with_error(row) for row in line}
        for setting, setting_rows in group_by_setting(rows).items()
        for name, line in table_lines(setting_rows).items()
    ]
    return lines, ["setting", "protocol", *columns]


def protocols_conclusions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how many cells hold, and the lost ones."""
    cells = contest_cells(rows)
    yield from count_verdicts(cells)
    yield from (f"lost: {cell}" for cell in cells if cell.better)


def count_verdicts(contest: Sequence[ContestCell]) -> Iterator[str]:
    """Yield how many cells hold, at large epsilons and at small ones."""
    for size, is_small in (("of at least", False), ("below", True)):
        cells = [c for c in contest if (c.auto["epsilon"] < REQUIRED_GAIN) == is_small]
        number = Counter(cell.verdict for cell in cells)
        if cells:
            yield (
                f"{len(cells) - number['lost']} of {len(cells)} cells with"
                f" epsilon {size}"
                f" {REQUIRED_GAIN:g} hold: auto is no worse than the best published"
                f" method and the majority in {number['best']}, and by at most"
                f" {POINTS:g} point or {ERRORS:g} standard errors in {number['within']}"
            )


def _row_label(row: Row) -> str:
    note = _method_label(row)
    return f"{_line_name(row)}{note and f' ({note})'} {with_error(row)}"


def _method_label(row: Row) -> str:
    implied = row["method"] in ("mrma", row["protocol"])
    return "" if implied else str(row["method"]).replace("_", " ")


_MARK = " †"


def protocols_files(rows: Sequence[Row], evidence: Evidence) -> dict[str, bytes]:
    """Return the page results.md, if something ran; it says how it was made."""
    configs = evidence.configs
    if not configs:
        return {}
    seeds = {config["seed"] for config in configs}
    seed = seeds.pop() if len(seeds) == 1 else None
    return {"results.md": markdown(rows, configs[0]["replicates"], seed).encode()}


def markdown(rows: Sequence[Row], replicates: int, seed: int | None = None) -> str:
    """Return the rows of a contest as a page: a summary, then a table a setting.

    ``replicates`` and ``seed`` are what the runs had. The same rows give the same text.
    """
    contest = contest_cells(rows)
    lost = [cell for cell in contest if cell.better]
    # By setting and epsilon: the verdict, and the best unchosen rival with its lead.
    verdicts, leads = dict[str, dict[float | None, str]](), dict[str, dict[Any, str]]()
    for cell in contest:
        setting, epsilon, text = cell.auto["setting"], cell.auto["epsilon"], ""
        if cell.ahead:
            gap = cell.ahead[0]["curvote"] - cell.auto["curvote"]
            text = f"{cell.ahead[0]['protocol']} {gap:+.1f}"
        leads.setdefault(setting, {})[epsilon] = text
        verdict = cell.verdict + _MARK * bool(cell.better)
        verdicts.setdefault(setting, {})[epsilon] = verdict
    settings = []
    for name, setting_rows in group_by_setting(rows).items():
        lost_at = {c.auto["epsilon"]: c for c in lost if c.auto["setting"] == name}
        texts = {
            label: {row["epsilon"]: _cell_text(row, label, lost_at) for row in line}
            for label, line in table_lines(setting_rows).items()
        }
        notes = (f"-{_MARK} epsilon {e:g}: {c.better_text}" for e, c in lost_at.items())
        settings.append((name, _markdown_table(texts, setting_rows), "\n".join(notes)))
    places = [cell.auto for cell in contest]
    opt_in = any(cell.has_opt_in for cell in contest)
    form = (files("curvote.papers.mrma") / "results.md.j2").read_text("utf-8")
    template = Template(form, trim_blocks=True, keep_trailing_newline=True)
    page: str = template.render(
        times="1 replicate" if replicates == 1 else f"{replicates} replicates",
        replicates=replicates,
        seed="" if seed is None else f" --seed {seed}",
        verdicts="\n".join(f"- {counted}." for counted in count_verdicts(contest)),
        summary=_markdown_table(verdicts, places),
        lost="\n- ".join(["Lost:\n", *map(str, lost)]) if lost else "No cell is lost.",
        ahead=_markdown_table(leads, places) if opt_in else "",
        settings=settings,
    )
    return page


def _cell_text(row: Row, line: str, lost: Mapping[float, ContestCell]) -> str:
    learner = row["learner"] if line == BEST_PUBLISHED else None
    note = ", ".join(filter(None, (_method_label(row), learner)))
    mark = _MARK if row["protocol"] == AUTO and row["epsilon"] in lost else ""
    return with_error(row) + (f" ({note})" if note else "") + mark


def _markdown_table(
    texts: Mapping[str, Mapping[float | None, str]], rows: Iterable[Row]
) -> str:
    places, table = column_levels(rows), Table(box=MARKDOWN)
    table.add_column("epsilon", no_wrap=True)
    for place in places:
        table.add_column("no privacy" if place is None else f"{place:g}", no_wrap=True)
    for name, line in texts.items():
        cells = [name, *(line.get(place, "") for place in places)]
        table.add_row(*(text.replace("|", r"\|") for text in cells))
    page = io.StringIO()
    plain = Console(file=page, width=2000, color_system=None, markup=False, emoji=False)
    plain.print(table)
    return page.getvalue().strip()


_BEST = "best published method"
_LOOKS = {
    AUTO: data.series_look("mrma"),
    _BEST: Look(style.INK, "D", size=4),
    "mrma sampled": data.series_look("best_single"),
    "votes": replace(data.series_look("votes"), width=1.3),
    MAJORITY: data.series_look("majority"),
    "joined": replace(data.series_look("joined"), colour="#56357f", width=1.3),
    "volunteers": replace(data.series_look("volunteers"), marker="", above=1),
    "clean": replace(data.series_look("clean"), marker="", above=1),
}
_RING: dict[str, Any] = {"ls": "", "marker": "o", "mfc": "none", "ms": 12}
_RING["mec"] = "#c1121f"
# The error bars of neighbours stand so far apart, as a factor of epsilon.
_STEP = 1.03


def protocols_figure(rows: Sequence[Row], _: Evidence) -> Figure:
    """Draw `auto` and its rivals, with the best learners; a ring is a lost cell."""
    settings, handles = group_by_setting(rows), dict[str, Line2D]()
    lost = [cell.auto for cell in contest_cells(rows) if cell.better]

    def draw(ax: Axes, setting: str) -> None:
        inside = settings[setting]
        ends = [row for line in table_lines(inside).values() for row in line]
        best_of = {name: best_rows(select(ends, protocol=name)) for name in _LOOKS}
        best_of[_BEST] = best_rows(select(inside, protocol=PUBLISHED))
        lines = [PlotLine(n, _LOOKS[n], best) for n, best in best_of.items() if best]
        for line in lines:
            handles[line.label] = line.handle()
            if line.rows[0]["epsilon"] is None:
                at = line.rows[0]["curvote"]
                ax.axhline(at, zorder=line.look.above, **style.line_style(line.look))
            else:
                levels = distinct_values(line.rows, "epsilon")
                places = {level: _shifted_level(level, line.label) for level in levels}
                figure.draw_line(ax, line, places)
        for row in select(lost, setting=setting):
            place = _shifted_level(row["epsilon"], AUTO)
            ax.plot(place, row["curvote"], zorder=7, **_RING)
        chart_rows = [row for line in lines for row in line.rows] or inside
        figure.log_axis(ax, sorted(distinct_values(chart_rows, "epsilon")))
        figure.error_axis(ax, chart_rows)

    chart = figure.draw_panels([*settings], draw, 2.9, y=figure.ERROR, handles=())
    if lost:
        handles["lost"] = Line2D([], [], label="auto has lost", **_RING)
    figure.fitting_legend(chart, [*handles.values()])
    return chart


def _shifted_level(epsilon: float, name: str) -> float:
    step = list(_LOOKS).index(name) - 2 if _LOOKS[name].marker else 0
    return float(epsilon * _STEP**step)
