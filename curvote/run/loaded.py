"""A run as an object: what it found, its models, its tables, what it planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from curvote.chain.axis import Cell
from curvote.errors import UserError, did_you_mean
from curvote.run import records, results, summary
from curvote.run.history import RunRecord, completed, load, loaded
from curvote.run.project import Project, find_project
from curvote.run.store.artifacts import artifact, sound
from curvote.validate import shown

_Cell = Cell | Mapping[str, Any] | None
_LISTED = 6


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
            f"name is {shown(name)}; give a run's id, or the name of a pipeline, as"
            " text."
        )
    place = find_project(None if project is None else Path(project))
    return Run(place, find(place, name))


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
        """Return id, pipeline and state, and what was overridden."""
        record = self.record
        options = "".join(f" --set {each}" for each in record.overrides)
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
        need_plan(self.record)
        return [v.cell.to_json() for v in results.views(self.project, self.record)]

    def scores(self, *, each: bool = False) -> pd.DataFrame:
        """Return a row for each cell, method and metric: mean, ``se``, replicates.

        With ``each`` a row for every replicate and metric, in ``value``. Shares are in
        [0, 1]. A release has no rows: its truth is not known. UserError: the scores are
        gone.
        """
        need_scores(self.project, self.record)
        if each:
            found = summary.scores(self.project, self.record).reset_index(drop=True)
            return found.dropna(axis="columns", how="all").infer_objects()
        return pd.DataFrame(summary.summary(self.project, self.record))

    def model(self, cell: _Cell = None) -> Any:
        """Return the model to keep of a cell's first replicate: it has ``predict``.

        ``cell`` maps axes to values, as many as tell it from the others. UserError: it
        does not, no cell is so, the system keeps no model, or what it takes is gone.
        """
        need_plan(self.record)
        every = [view.cell for view in results.views(self.project, self.record)]
        found = _one(every, cell)
        try:
            model = results.final_model(self.project, self.record, found)
        except UserError:
            need(self.project, self.record, [s["stage"] for s in self.record.steps])
            raise
        if model is None:
            raise UserError(f"{found.words}: nothing there keeps a model.")
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
        need_plan(self.record)
        keys = self.record.keys(stage)
        if not keys:
            stages = list(dict.fromkeys(s["stage"] for s in self.record.steps))
            there = f" It has {', '.join(stages)}."
            hint = did_you_mean(stage, stages)
            raise UserError(f"run {self.id} has no stage {stage!r}.{hint}{there}")
        wanted = self._serving([own for own, _ in keys], cell)
        need(self.project, self.record, [stage])
        found = []
        for own, key in keys:
            if own in wanted:
                table = _table(self.project, stage, key, name)
                found.append(_placed(table, own) if len(keys) > 1 else table)
        return pd.DataFrame(pd.concat(found, ignore_index=True))

    def _serving(self, every: Sequence[Cell], cell: _Cell) -> Sequence[Cell]:
        """Return those that have these values, or serve a cell that has them."""
        ends = [view.cell for view in results.views(self.project, self.record)]
        asked = _some([*every, *ends], cell)
        served = (own for own in every if any(own.serves(each) for each in asked))
        return [*dict.fromkeys(served)]

    def plan(self) -> pd.DataFrame:
        """Return the steps of the run: stage, cell, key, what was done, and why."""
        rows = [s | {"cell": str(Cell.of(s["cell"]))} for s in self.record.steps]
        return pd.DataFrame(rows, columns=["stage", "cell", "key", "action", "reason"])


def find(project: Project, name: str) -> RunRecord:
    """Return the run of an id, or a pipeline's latest completed one (NAME~N: before).

    UserError: there is no such run.
    """
    record = load(project, name) if name == Path(name).name else None
    if record is not None:
        return record
    pipeline, _, back = name.partition("~")
    known = records.pipelines(project)
    if pipeline in known and (back.isdecimal() or "~" not in name):
        return _back(project, pipeline, int(back or 0))
    raise UserError(
        f"no run {name!r}.{did_you_mean(pipeline, known)} Give a run's id, or the name"
        " of a pipeline that ran (NAME~1: the run before its latest); `curvote runs`"
        " lists them."
    )


def _back(project: Project, pipeline: str, count: int) -> RunRecord:
    wanted = pipeline, "completed", count + 1
    done = loaded(project, lambda: records.newest(project, *wanted))
    if len(done) > count:
        return done[0]
    if not done:
        return completed(project, pipeline)  # says what there is not
    raise UserError(
        f"{pipeline} has {len(done)} completed runs: {pipeline}~{len(done) - 1} is the"
        f" first; `curvote runs {pipeline}` lists them."
    )


def need(project: Project, record: RunRecord, stages: Sequence[str]) -> None:
    """Refuse to go on where what some stages of a run stored is not there."""
    need_plan(record)
    gone = ", ".join(dict.fromkeys(lost(project, record, stages)))
    if not gone:
        return
    options = "".join(f" --set {each}" for each in record.overrides)
    again = f"`curvote run {record.pipeline}{options}` computes it"
    if record.status != "completed":
        why = f" ({record.why})" if record.why else ""
        raise UserError(
            f"run {record.id} is {record.status}{why} and stored nothing in {gone};"
            f" {again}."
        )
    raise UserError(
        f"run {record.id}: what it stored in {gone} is gone: `curvote gc` keeps what"
        f" the latest run of a pipeline needs (--keep: of more). {again} anew."
    )


def need_plan(record: RunRecord) -> None:
    """Refuse a run that could not even be planned: nothing is known of it."""
    if not record.config:
        said = record.why or "nobody wrote down why"
        raise UserError(f"run {record.id} could not be planned: {said}")


def need_scores(project: Project, record: RunRecord) -> None:
    """The same for the stages that score."""
    need_plan(record)
    need(project, record, summary.scoring(record))


def lost(project: Project, record: RunRecord, stages: Sequence[str]) -> list[str]:
    """Return the stages, among some, of which a run's artifact is not there."""
    return [
        step["stage"]
        for step in record.steps
        if step["stage"] in stages
        and artifact(project, step["stage"], step["key"]).problem(content=False)
        == "missing"
    ]


def _one(every: Sequence[Cell], cell: _Cell) -> Cell:
    found = _some(every, cell)
    if len(found) == 1:
        return found[0]
    raise UserError(f"cell: {len(found)} are so; name one: {_listed(found)}.")


def _some(every: Sequence[Cell], cell: _Cell) -> list[Cell]:
    """Return the cells that have all these values."""
    if not isinstance(cell, Cell | Mapping | None):
        raise UserError(
            f"cell is {shown(cell)}; write {{axis: value}}, as the run's `cells` are."
        )
    asked = cell if isinstance(cell, Cell) else Cell.of(cell or {})
    found = [own for own in every if asked.serves(own)]
    if found:
        return found
    raise UserError(f"cell: none is of {asked.to_json()}. There are: {_listed(every)}.")


def _listed(cells: Sequence[Cell]) -> str:
    more = f"; and {len(cells) - _LISTED} more" if len(cells) > _LISTED else ""
    return "; ".join(own.words for own in cells[:_LISTED]) + more


def _placed(table: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    """Add the coordinates of a cell; a column of the table's own stays."""
    own = {f"cell_{n}" if n in table else n: v for n, v in cell.to_json().items()}
    return table.assign(**own)


def _table(project: Project, stage: str, key: str, name: str | None) -> pd.DataFrame:
    """Return a table of an artifact; UserError where its name does not tell which."""
    found = sound(project, stage, key)
    names = list(found.manifest["tables"])
    wanted = names if name is None else [each for each in names if each == name]
    if len(wanted) != 1:
        there = ", ".join(names)
        raise UserError(f"stage {stage}: name one of its tables with name=: {there}.")
    return pd.DataFrame(found.table(wanted[0]).to_pandas())
