"""Reproduction of MRMA's entries: comparison, files, terminal text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from curvote.papers import rows as words
from curvote.papers.evidence import Evidence
from curvote.papers.mrma.comparison import (
    REPRODUCTIONS,
    comparison,
    count_agreeing,
    mrma_evidence,
)
from curvote.papers.reproduction import output_folder, write_files
from curvote.pipeline.config.project import Project
from curvote.pipeline.store.records import RunRecord


def draw_entry(
    name: str,
    rows: Sequence[words.Row],
    *kinds: str,
    evidence: Evidence | None = None,
) -> dict[str, bytes]:
    """Return the figure of an entry as ``svg``, ``png``.

    ``rows`` as `comparison` gives them; ``evidence`` is what they come from. Boxes need
    it, and curves of theory, which follow the runs' configuration.
    """
    from curvote.papers.drawing import draw_files  # imports matplotlib

    place = f"curvote.papers.mrma.{REPRODUCTIONS[name].figure}"
    return draw_files(name, place, rows, *kinds, evidence=evidence)


def compare(
    project: Project, name: str, records: Iterable[RunRecord]
) -> tuple[list[words.Row], list[Path]]:
    """Return the rows of `reproduce NAME` from completed runs, and the files written.

    They stand in the folder ``reproduce`` of the reports of the pipeline ``name``.
    """
    gathered = mrma_evidence(project, records)
    rows = comparison(name, gathered.summaries)
    return rows, write_entry(name, rows, output_folder(project, name), gathered)


def write_entry(
    name: str,
    rows: Sequence[words.Row],
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
    return write_files(folder, name, rows, extra_files)


def agreement(name: str, rows: Sequence[words.Row]) -> Iterator[str]:
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


def _format_difference(row: words.Row) -> float:
    return abs(float(row["curvote"] - row["published"]))


def laid_out(name: str, rows: Sequence[words.Row]) -> words.Lines:
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
