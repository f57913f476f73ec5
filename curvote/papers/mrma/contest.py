"""Contest of protocols: cells where `auto` holds, the page of results, its figure."""

import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from curvote.chain.measure import Look
from curvote.papers import drawing
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import Row, column_levels, distinct_values, select, with_error
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


@dataclass(frozen=True)
class ContestCell:
    """The result of `auto` in a setting at one epsilon, and its rivals.

    ``rivals`` are the best published method and the majority, as far as they are there;
    ``opt_in`` is what it never takes by itself.
    """

    auto: Row
    rivals: tuple[Row, ...]
    opt_in: tuple[Row, ...] = ()

    @property
    def better(self) -> list[Row]:
        """The rivals that beat `auto` by more than the limit."""
        return [rival for rival in self.rivals if is_beaten(self.auto, rival)]

    @property
    def opt_in_ahead(self) -> list[Row]:
        """The opt-in protocols that beat `auto` by more than the limit."""
        better = [row for row in self.opt_in if is_beaten(self.auto, row)]
        return sorted(better, key=lambda row: float(row["curvote"]))

    @property
    def verdict(self) -> str:
        """The verdict: ``best``, ``within`` the limit, or ``lost``."""
        if self.better:
            return "lost"
        first = all(self.auto["curvote"] <= rival["curvote"] for rival in self.rivals)
        return "best" if first else "within"


def is_beaten(row: Row, other: Row) -> bool:
    """Return whether ``other`` is better by 1 point and 2 standard errors.

    The errors are taken to be independent; one that is not known counts as 0.
    """
    error = math.hypot(row["se"] or 0.0, other["se"] or 0.0)
    limit = max(POINTS, ERRORS * error) + _ROUNDING
    return bool(row["curvote"] - other["curvote"] > limit)


def contest_cells(rows: Sequence[Row]) -> list[ContestCell]:
    """Return the cells of `auto` in the rows of a contest, epsilon rising."""
    results = []
    for setting_rows in group_by_setting(rows).values():
        auto_rows = (
            row for row in select(setting_rows, protocol=AUTO) if row["epsilon"]
        )
        for auto in sorted(auto_rows, key=lambda row: float(row["epsilon"])):
            level_rows = select(setting_rows, epsilon=auto["epsilon"])
            majority = select(level_rows, protocol=MAJORITY)
            rivals = (*best_published(level_rows), *majority)
            opt_in = tuple(
                row
                for name in UNCHOSEN_PROTOCOLS
                for row in _final_rows(select(setting_rows, protocol=name))
                if row["epsilon"] in {auto["epsilon"], None}
            )
            results.append(ContestCell(auto, rivals, opt_in))
    return results


def group_by_setting(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each setting in their order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row["setting"]), []).append(row)
    return groups


def best_published(rows: Sequence[Row]) -> list[Row]:
    """Return the published method of least error in one setting at each epsilon."""
    return best_rows(select(rows, protocol=PUBLISHED))


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
    for protocol in dict.fromkeys(row["protocol"] for row in rows):
        protocol_rows = select(rows, protocol=protocol)
        ends = list(_final_rows(protocol_rows))
        for row in ends:
            groups.setdefault(line_name(row), []).append(row)
        if protocol == PUBLISHED:
            groups[BEST_PUBLISHED] = best_rows(
                row for row in protocol_rows if row not in ends
            )
    return {name: line for name, line in groups.items() if line}


def line_name(row: Row) -> str:
    """Return the name of a row's line: its protocol, and its learner if it has one."""
    return ", ".join(filter(None, (row["protocol"], row["learner"])))


def _final_rows(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield each learner's final row of one protocol at each epsilon."""
    groups: dict[tuple[str | None, float | None], list[Row]] = {}
    for row in rows:
        if row["method"] != _BASELINE:
            groups.setdefault((row["learner"], row["epsilon"]), []).append(row)
    for group in groups.values():
        yield min(group, key=lambda row: _RANKS.get(row["method"], len(_FINAL)))


_MARK = " †"
_ABOUT = """\
Misclassification of new clients in %, ± one standard error, over {times}. In each
setting all protocols ask the same clients, each with the same budget epsilon.

Made by `curvote reproduce beyond --replicates {replicates}{seed}`.

A cell is a setting at one epsilon. `auto` is best in it where neither the best
published method nor `majority` does better. It has lost where one of them is better by
more than 1 point and by more than 2 standard errors of the difference; else it is
within the limit. Published are all methods of `mrma`, with every learner, and the
histogram. The best of them is chosen by the very errors shown here: a favour."""
_AHEAD = """\
What `auto` never takes unasked, and where the best of it beats `auto` by more than the
same limit (in points): `volunteers` and `joined` need people who make their records and
labels public (50 here), `counts`, `stump`, `tree` and `sgd` are other rules."""
_LINES = """\
Each line is a protocol, with its learner. In brackets: what `auto` and `direct` took
at this epsilon, and which other published method is best. `clean` has no privacy."""


def markdown(rows: Sequence[Row], replicates: int, seed: int | None = None) -> str:
    """Return the rows of a contest as a page: a summary, then a table a setting.

    ``rows`` as `comparison` gives them; ``replicates`` and ``seed`` are what the runs
    had. The same rows give the same text.
    """
    contest = contest_cells(rows)
    times = "1 replicate" if replicates == 1 else f"{replicates} replicates"
    chosen = "" if seed is None else f" --seed {seed}"
    parts = [
        "# Our protocols and the published ones",
        _ABOUT.format(times=times, replicates=replicates, seed=chosen),
        "## Summary",
        *_summary_lines(contest),
        "## Settings",
        _LINES,
    ]
    for setting, setting_rows in group_by_setting(rows).items():
        setting_cells = [cell for cell in contest if cell.auto["setting"] == setting]
        parts += [f"### {setting}", *_setting_section(setting_rows, setting_cells)]
    return "\n\n".join(parts) + "\n"


def count_verdicts(contest: Sequence[ContestCell]) -> Iterator[str]:
    """Yield how many cells hold, at large epsilons and at small ones."""
    learnable = [cell for cell in contest if cell.auto["epsilon"] >= REQUIRED_GAIN]
    below = [cell for cell in contest if cell.auto["epsilon"] < REQUIRED_GAIN]
    for size, size_cells in (("of at least", learnable), ("below", below)):
        number = Counter(cell.verdict for cell in size_cells)
        if size_cells:
            yield (
                f"{len(size_cells) - number['lost']} of {len(size_cells)} cells with"
                f" epsilon {size}"
                f" {REQUIRED_GAIN:g} hold: auto is no worse than the best published"
                f" method and the majority in {number['best']}, and by at most"
                f" {POINTS:g} point or {ERRORS:g} standard errors in {number['within']}"
            )


def describe_cell(cell: ContestCell) -> str:
    """Return a cell's place, the result of `auto`, and what is better."""
    place = f"{cell.auto['setting']}, epsilon {cell.auto['epsilon']:g}"
    return f"{place}: {_row_label(cell.auto)}, {_describe_better(cell)}"


def _describe_better(cell: ContestCell) -> str:
    return f"better: {', '.join(map(_row_label, cell.better)) or 'none'}"


def _row_label(row: Row) -> str:
    note = _method_label(row)
    return f"{line_name(row)}{note and f' ({note})'} {with_error(row)}"


def _method_label(row: Row) -> str:
    """Return a row's method, empty where the protocol says it."""
    implied = row["method"] in ("mrma", row["protocol"])
    return "" if implied else str(row["method"]).replace("_", " ")


def _summary_lines(contest: Sequence[ContestCell]) -> Iterator[str]:
    places = [cell.auto for cell in contest]
    yield "\n".join(f"- {counted}." for counted in count_verdicts(contest))
    # A line a setting, a column an epsilon.
    verdicts = _cell_texts(
        contest, lambda cell: cell.verdict + _MARK * bool(cell.better)
    )
    yield _markdown_table(verdicts, places)
    lost = [f"- {describe_cell(cell)}" for cell in contest if cell.better]
    yield "\n".join(["Lost:", "", *lost]) if lost else "No cell is lost."
    if any(cell.opt_in for cell in contest):
        yield _AHEAD
        yield _markdown_table(_cell_texts(contest, _best_ahead), places)


def _cell_texts(
    contest: Sequence[ContestCell], describe: Callable[[ContestCell], str]
) -> dict[str, dict[float | None, str]]:
    """Return the description of each cell by setting and epsilon."""
    texts: dict[str, dict[float | None, str]] = {}
    for cell in contest:
        line = texts.setdefault(cell.auto["setting"], {})
        line[cell.auto["epsilon"]] = describe(cell)
    return texts


def _best_ahead(cell: ContestCell) -> str:
    """Return the best opt-in rival of `auto` and its lead in points."""
    if not cell.opt_in_ahead:
        return ""
    first = cell.opt_in_ahead[0]
    return f"{first['protocol']} {first['curvote'] - cell.auto['curvote']:+.1f}"


def _setting_section(
    rows: Sequence[Row], contest: Sequence[ContestCell]
) -> Iterator[str]:
    """Yield the table of one setting, and the rivals where `auto` lost."""
    lost = {cell.auto["epsilon"]: cell for cell in contest if cell.better}
    texts = {
        name: {row["epsilon"]: _cell_text(row, name, lost) for row in line}
        for name, line in table_lines(rows).items()
    }
    yield _markdown_table(texts, rows)
    if lost:
        notes = (
            f"-{_MARK} epsilon {e:g}: {_describe_better(lost[e])}" for e in sorted(lost)
        )
        yield "\n".join(notes)


def _cell_text(row: Row, line: str, lost: Mapping[float, ContestCell]) -> str:
    learner = row["learner"] if line == BEST_PUBLISHED else None
    note = ", ".join(filter(None, (_method_label(row), learner)))
    mark = _MARK if row["protocol"] == AUTO and row["epsilon"] in lost else ""
    return with_error(row) + (f" ({note})" if note else "") + mark


def _markdown_table(
    texts: Mapping[str, Mapping[float | None, str]], rows: Iterable[Row]
) -> str:
    """Return a Markdown table: a line a name, a column for each epsilon of ``rows``."""
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


_CLEAN = "clean"
_PUBLISHED = "best published method"
_LOOKS = {
    AUTO: data.series_look("mrma"),
    _PUBLISHED: Look(style.INK, "D", size=4),
    "mrma sampled": data.series_look("best_single"),
    "votes": replace(data.series_look("votes"), width=1.3),
    MAJORITY: data.series_look("majority"),
    "joined": replace(data.series_look("joined"), colour="#56357f", width=1.3),
    "volunteers": replace(data.series_look("volunteers"), marker="", above=1),
    _CLEAN: replace(data.series_look("clean"), marker="", above=1),
}
_RED = "#c1121f"
_RING: dict[str, Any] = {"ls": "", "marker": "o", "mfc": "none", "ms": 12, "mec": _RED}
# The error bars of neighbours stand so far apart, as a factor of epsilon.
_STEP = 1.03


def figure(rows: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw `auto` and its rivals; a ring marks a lost cell."""
    settings, contest = group_by_setting(rows), contest_cells(rows)
    fig, axes = drawing.panels(len(settings), height=2.9)
    handles: dict[str, Line2D] = {}
    for ax, (setting, setting_rows) in zip(axes, settings.items(), strict=True):
        cells = [cell for cell in contest if cell.auto["setting"] == setting]
        chart_lines = _chart_lines(setting_rows)
        _draw_panel(ax, setting_rows, chart_lines, cells)
        handles |= {line.label: line.handle() for line in chart_lines}
        drawing.panel_title(ax, setting)
    drawing.label_y_axes(axes)
    if any(cell.better for cell in contest):
        handles["lost"] = Line2D([], [], label="auto has lost", **_RING)
    drawing.fitting_legend(fig, [*handles.values()])
    return fig


def _draw_panel(
    ax: Axes,
    rows: Sequence[Row],
    chart_lines: Sequence[drawing.PlotLine],
    contest: Sequence[ContestCell],
) -> None:
    for line in chart_lines:
        if line.rows[0]["epsilon"] is None:
            at = line.rows[0]["curvote"]
            ax.axhline(at, zorder=line.look.above, **style.line_style(line.look))
        else:
            levels = distinct_values(line.rows, "epsilon")
            places = {level: _shifted_level(level, line.label) for level in levels}
            drawing.draw_line(ax, line, places)
    for lost in (cell.auto for cell in contest if cell.better):
        place = _shifted_level(lost["epsilon"], AUTO)
        ax.plot(place, lost["curvote"], zorder=7, **_RING)
    chart_rows = [row for line in chart_lines for row in line.rows] or rows
    drawing.log_axis(ax, sorted(distinct_values(chart_rows, "epsilon")))
    drawing.error_axis(ax, chart_rows)


def _chart_lines(rows: Sequence[Row]) -> list[drawing.PlotLine]:
    """Return the chart lines of a setting; of several learners the best."""
    ends = [row for line in table_lines(rows).values() for row in line]
    best_of = {name: best_rows(select(ends, protocol=name)) for name in _LOOKS}
    best_of[_PUBLISHED] = best_published(rows)
    return [
        drawing.PlotLine(name, _LOOKS[name], best)
        for name, best in best_of.items()
        if best
    ]


def _shifted_level(epsilon: float, name: str) -> float:
    step = list(_LOOKS).index(name) - 2 if _LOOKS[name].marker else 0
    return float(epsilon * _STEP**step)
