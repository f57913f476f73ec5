"""Run objects for users, and the folders of their pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from curvote.base.errors import UserError, did_you_mean
from curvote.base.validate import format_value
from curvote.chain.axis import Cell
from curvote.pipeline.config.project import Project, find_project
from curvote.pipeline.run import results
from curvote.pipeline.store import records
from curvote.pipeline.store.artifacts import artifact, checked_artifact
from curvote.pipeline.store.records import RunRecord, earlier_run, load_record

STAMP = "report.json"
PAGE = "report.html"


def page_folder(project: Project, record: RunRecord) -> Path:
    """Return the folder of a run's page; older runs have one of their own."""
    shared = project.reports / record.pipeline
    done = records.load_records(project, record.pipeline, "completed", 1)
    later = any((r.sequence, r.id) > (record.sequence, record.id) for r in done)
    return shared / record.id if later else shared


def find_page(project: Project, record: RunRecord) -> Path | None:
    """Return the page that was drawn of a run; None: there is none."""
    shared = project.reports / record.pipeline
    for folder in (shared / record.id, shared):
        try:
            stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if (folder / PAGE).is_file() and stamp.get("run") == record.id:
            return folder / PAGE
    return None


_Cell = Cell | Mapping[str, Any] | None
_MAX_LISTED = 6


def load_run(name: str, project: str | Path | None = None) -> Run:
    """Return a run: the latest completed one of a pipeline, or the one of an id.

    Parameters
    ----------
    name : str
        A pipeline's name, NAME~1 for the completed run before its latest, or a run's
        id as ``curvote runs`` lists them. Without such a run: UserError.
    project : path or None, default=None
        The folder with pipelines.yaml, or one below it; None is the current one.

    Returns
    -------
    Run
        With ``scores()``, ``model(cell)``, ``table(stage)`` and ``plan()``.

    Examples
    --------
    >>> from curvote import load_run
    >>> run = load_run("demo")  # doctest: +SKIP
    >>> run.scores().query("method == 'mrma'")  # doctest: +SKIP
    >>> model = run.model({"epsilon": 1, "learner": "centroid"})  # doctest: +SKIP
    """
    if not isinstance(name, str):
        raise UserError(
            f"name is {format_value(name)}; give a run's id, or the name of a"
            " pipeline, as text."
        )
    place = find_project(None if project is None else Path(project))
    return Run(place, find_run(place, name))


@dataclass(frozen=True, repr=False)
class Run:
    """One execution of a pipeline, as its record and the store have it.

    Parameters
    ----------
    project : Project
        The folder that holds it.
    record : RunRecord
        What it was told and what it did; `load_run` finds it by a name.

    Examples
    --------
    >>> from curvote import load_run
    >>> run = load_run("demo")  # doctest: +SKIP
    >>> run.cells[0]  # doctest: +SKIP
    {'protocol': 'mrma', 'epsilon': 0.5, 'learner': 'logistic'}
    >>> run.scores(each=True).groupby("method")["value"].mean()  # doctest: +SKIP
    >>> run == load_run(run.id)  # doctest: +SKIP
    True
    """

    project: Project
    record: RunRecord

    def __hash__(self) -> int:
        """Return the hash of its id: equal runs have one."""
        return hash(self.id)

    def __repr__(self) -> str:
        """Return id, pipeline, overrides and state."""
        record = self.record
        options = "".join(f" --set {override}" for override in record.overrides)
        return f"<run {record.id}: {record.pipeline}{options}, {record.status}>"

    @property
    def id(self) -> str:
        """Its name, as ``curvote runs`` lists it."""
        return self.record.id

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        return self.record.config

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The cells in which the run ends, each a mapping from axes to values."""
        require_plan(self.record)
        views = results.final_views(self.project, self.record)
        return [view.cell.to_json() for view in views]

    def scores(self, *, each: bool = False) -> pd.DataFrame:
        """Return a row for each cell, method and metric: mean, ``se``, replicates.

        With ``each`` a row for every replicate and metric, in ``value``. Shares are in
        [0, 1]. A release has no rows: its truth is not known. UserError: the scores are
        gone.
        """
        require_scores(self.project, self.record)
        if each:
            scores = results.replicate_scores(self.project, self.record)
            scores = scores.reset_index(drop=True).dropna(axis="columns", how="all")
            return scores.infer_objects()
        return pd.DataFrame(results.mean_scores(self.project, self.record))

    def model(self, cell: _Cell = None) -> Any:
        """Return the model to keep of a cell's first replicate: it has ``predict``.

        ``cell`` maps axes to values, as many as tell it from the others. UserError: it
        does not, no cell is so, the system keeps no model, or what it takes is gone.
        """
        require_plan(self.record)
        every = [view.cell for view in results.final_views(self.project, self.record)]
        matches = _matching_cells(every, cell)
        if len(matches) > 1:
            listed = _list_cells(matches)
            raise UserError(f"cell: {len(matches)} are so; name one: {listed}.")
        chosen = matches[0]
        try:
            model = results.final_model(self.project, self.record, chosen)
        except UserError:
            stages = [step["stage"] for step in self.record.steps]
            require_artifacts(self.project, self.record, stages)
            raise
        if model is None:
            raise UserError(f"{chosen.words}: nothing there keeps a model.")
        return model

    def table(
        self, stage: str, cell: _Cell = None, *, name: str | None = None
    ) -> pd.DataFrame:
        """Return what a stage stored: the cells' tables one below the other.

        Columns say which cell a row is of where there are several (``cell_learner``
        where the table has a column ``learner`` of its own); ``cell`` chooses.
        ``name`` is one of the tables, where the stage has more than one. UserError:
        there is no such stage, cell or table, or it is gone.
        """
        require_plan(self.record)
        keys = self.record.stage_keys(stage)
        if not keys:
            stages = list(dict.fromkeys(s["stage"] for s in self.record.steps))
            listed = f" It has {', '.join(stages)}."
            hint = did_you_mean(stage, stages)
            raise UserError(f"run {self.id} has no stage {stage!r}.{hint}{listed}")
        wanted = self._serving_cells([coordinates for coordinates, _ in keys], cell)
        require_artifacts(self.project, self.record, [stage])
        tables = []
        for coordinates, key in keys:
            if coordinates in wanted:
                table = _read_table(self.project, stage, key, name)
                axes = coordinates.to_json().items() if len(keys) > 1 else ()
                named = {f"cell_{n}" if n in table else n: value for n, value in axes}
                tables.append(table.assign(**named))
        return pd.DataFrame(pd.concat(tables, ignore_index=True))

    def _serving_cells(self, every: Sequence[Cell], cell: _Cell) -> Sequence[Cell]:
        """Return the cells that have these values, or serve a cell that has them."""
        ends = [view.cell for view in results.final_views(self.project, self.record)]
        wanted = _matching_cells([*every, *ends], cell)
        served = (c for c in every if any(c.serves(selected) for selected in wanted))
        return [*dict.fromkeys(served)]

    def plan(self) -> pd.DataFrame:
        """Return the steps of the run: stage, cell, key, what was done, and why."""
        steps = self.record.steps
        rows = [s | {"cell": str(Cell.from_mapping(s["cell"]))} for s in steps]
        return pd.DataFrame(rows, columns=["stage", "cell", "key", "action", "reason"])


def find_run(project: Project, name: str) -> RunRecord:
    """Return the run of an id, or a pipeline's latest completed one.

    UserError: there is no such run.
    """
    record = load_record(project, name)
    if record is not None:
        return record
    pipeline, _, back = name.partition("~")
    pipelines = records.pipeline_names(project)
    if pipeline in pipelines and (back.isdecimal() or "~" not in name):
        return earlier_run(project, pipeline, int(back or 0))
    raise UserError(
        f"no run {name!r}.{did_you_mean(pipeline, pipelines)} Give a run's id, or the"
        " name of a pipeline that ran (NAME~1: the run before its latest); `curvote"
        " runs` lists them."
    )


def require_artifacts(
    project: Project, record: RunRecord, stages: Sequence[str]
) -> None:
    """Refuse to go on if artifacts of these stages of a run are missing."""
    require_plan(record)
    missing = ", ".join(dict.fromkeys(missing_stages(project, record, stages)))
    if not missing:
        return
    options = "".join(f" --set {override}" for override in record.overrides)
    again = f"`curvote run {record.pipeline}{options}` computes it"
    if record.status != "completed":
        why = f" ({record.why})" if record.why else ""
        raise UserError(
            f"run {record.id} is {record.status}{why} and stored nothing in {missing};"
            f" {again}."
        )
    raise UserError(
        f"run {record.id}: what it stored in {missing} is gone: `curvote gc` keeps what"
        f" the latest run of a pipeline needs (--keep: of more). {again} anew."
    )


def require_plan(record: RunRecord) -> None:
    """Refuse a run that could not even be planned (UserError)."""
    if not record.config:
        reason = record.why or "nobody wrote down why"
        raise UserError(f"run {record.id} could not be planned: {reason}")


def require_scores(project: Project, record: RunRecord) -> None:
    """Refuse to go on if artifacts of the scoring stages are missing."""
    require_plan(record)
    require_artifacts(project, record, results.scoring_stages(record))


def missing_stages(
    project: Project, record: RunRecord, stages: Sequence[str]
) -> list[str]:
    """Return those of ``stages`` whose artifact is missing."""
    return [
        step["stage"]
        for step in record.steps
        if step["stage"] in stages
        and artifact(project, step["stage"], step["key"]).problem(content=False)
        == "missing"
    ]


def _matching_cells(every: Sequence[Cell], cell: _Cell) -> list[Cell]:
    if not isinstance(cell, Cell | Mapping | None):
        raise UserError(
            f"cell is {format_value(cell)}; write {{axis: value}}, as the run's"
            " `cells` are."
        )
    wanted = cell if isinstance(cell, Cell) else Cell.from_mapping(cell or {})
    matches = [candidate for candidate in every if wanted.serves(candidate)]
    if matches:
        return matches
    raise UserError(
        f"cell: none is of {wanted.to_json()}. There are: {_list_cells(every)}."
    )


def _list_cells(cells: Sequence[Cell]) -> str:
    more = f"; and {len(cells) - _MAX_LISTED} more" if len(cells) > _MAX_LISTED else ""
    return "; ".join(cell.words for cell in cells[:_MAX_LISTED]) + more


def _read_table(
    project: Project, stage: str, key: str, name: str | None
) -> pd.DataFrame:
    """Return a table of an artifact; UserError: ``name`` does not tell which."""
    stored = checked_artifact(project, stage, key)
    names = list(stored.manifest["tables"])
    wanted = [table for table in names if name in (None, table)]
    if len(wanted) != 1:
        listed = ", ".join(names)
        raise UserError(f"stage {stage}: name one of its tables with name=: {listed}.")
    return pd.DataFrame(stored.table(wanted[0]).to_pandas())
