"""Home of a record: models that run there, and tables of outcomes that are read there.

A model is a skops file, or an ONNX file by onnxruntime.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from curvote.base import table_file
from curvote.base.errors import UserError
from curvote.base.table_file import Cells, Column, Violations
from curvote.base.text import normalise_id
from curvote.client.table import read_curve
from curvote.messages.message import Outcome
from curvote.systems.monitor.questions import CALIBRATION, VERSUS

ONNX = ".onnx"
ID, ANSWERED, TRUTH = "id", "answered", "truth"
GROUP, PROBABILITY, SECOND = "group", "probability", "answered_2"


def read_outcomes(
    path: Path, task: Any
) -> tuple[dict[str, tuple[int | None, Outcome]], list[str]]:
    """Return public group and outcome of each id of a table, and notes.

    Its columns are id, answered and truth; group where the task has groups, private or
    public; probability where it asks for that; of two models answered and answered_2,
    or A,B in one. UserError, every problem at once, with lines: a column that is not
    there or stands twice, no row, an id that is empty or stands twice, a group that is
    none, a probability that is no finite number. What was answered and what is true has
    no say in it, whatever it is.
    """
    table, violations = table_file.read_cells(path), Violations(path)
    if not len(table):
        violations.note("it has no row")
    q, groups = task.asked_question, task.asked_question.groups or task.places
    two = [SECOND] * (q.name == VERSUS and SECOND in table.columns)
    extra = [GROUP] * bool(groups) + [PROBABILITY] * (q.name == CALIBRATION)
    violations.note_columns(table.columns, [ID, ANSWERED, *two, TRUTH, *extra])
    once = {name for name in table.columns if table.columns.count(name) == 1}
    ids = [str(row) for row in range(len(table))]
    if ID in once:
        ids = [*map(normalise_id, table_file.read_texts(table, ID, violations))]
        words = f"{ID}: an id that stood there before"
        violations.note_rows(table, table_file.repeated_texts(ids), words)
    place, sure = (np.zeros(len(table)) for _ in range(2))
    if GROUP in once.intersection(extra):
        place = table_file.read_column(table, Column(GROUP, groups), violations)
    if PROBABILITY in once.intersection(extra):
        sure = table_file.read_column(table, Column(PROBABILITY), violations)
    violations.check()
    columns = [ANSWERED, *two, TRUTH]
    texts = [map(table_file.cell_text, table[name]) for name in columns]
    outcomes, empty = {}, 0
    for row, (name, *answered, truth) in enumerate(zip(ids, *texts, strict=True)):
        empty += not (all(answered) and truth)
        if q.name == VERSUS and not two:
            answered[:] = answered[0].partition(",")[::2]
        group = groups[int(place[row])] if q.groups else None
        probability = float(sure[row]) if q.name == CALIBRATION else None
        outcome = Outcome(tuple(answered), truth, group, probability)
        outcomes[name] = int(place[row]) if task.places else None, outcome
    words = f"{empty} rows lack an answer or the truth, and count as other texts do"
    return outcomes, [words] * bool(empty)


def model_answer(path: Path, record: Path) -> tuple[str, float]:
    """Return the answer of the model at ``path`` about a record, and how sure it is.

    The record is one row below a header of the model's columns, as CSV or Parquet; a
    model that was fitted to an array takes them in their order, and curvote's model of
    curves any file that `curvote client answer --curve` takes. The probability is that
    of the answer, 1 of a model that states none. A model that fails on the record has
    answered nothing, and is not sure: whatever the record holds, there is an answer.
    UserError: no such files, no model, no record of one row, or without a column that
    the model names.
    """
    load = _onnx if path.suffix.lower() == ONNX else _skops
    cells = table_file.read_cells(record)
    predict, columns, width = load(path, cells.columns)
    if width < 0 and not {*columns} <= {*cells.columns}:
        values = read_curve(record, len(columns)).tolist()
        cells = Cells(columns, [[value] for value in values], np.array([1]), "row")
    if len(cells) != 1:
        raise UserError(f"{record} must hold one row, below a header of columns.")
    violations = Violations(record)
    if not columns and width not in {0, len(cells.columns)}:
        violations.note(f"it has {len(cells.columns)} columns; the model reads {width}")
    violations.note_columns(cells.columns, columns)
    violations.check()
    try:
        with np.errstate(all="ignore"):
            answer, sure = predict(cells, columns or cells.columns)
        return str(answer), float(sure)
    except Exception:  # noqa: BLE001 - a failure that shows would tell of the record
        return "", 0.0


# What a model answers about cells in some columns, and how sure it is. Behind it the
# columns that it names, or how many it reads; 0 is unknown, -1 are a curve's points.
_Loaded = tuple[Callable[[Cells, list[str]], tuple[Any, float]], list[str], int]


def _numbers(cells: Cells, names: list[str]) -> np.ndarray:
    return table_file.read_numbers(cells, names, Violations(Path("record")))


def _skops(path: Path, header: list[str]) -> _Loaded:
    """Return what a scikit-learn model answers, loaded as `curvote utility` does.

    Of columns that are no numbers a model with named columns gets the texts. Curvote's
    own models take a record as training read it, or its numbers.
    """
    import pandas as pd

    from curvote.systems.utility.method.models.loading import load_model

    model = load_model(path).model
    named = [*map(str, getattr(model, "feature_names_in_", ()))]
    named, form = getattr(model, "columns", named), getattr(model, "form", None)
    if form is not None and {*form.raw} <= {*header}:
        named = form.raw
    on_grid = getattr(getattr(model, "projection", None), "grid", None) is not None

    def predict(cells: Cells, columns: list[str]) -> tuple[Any, float]:
        x: Any = _numbers(cells, columns)
        if named:
            missing = np.isnan(x[0])
            texts = [table_file.cell_text(cells[name][0]) for name in columns]
            x = pd.DataFrame(x, columns=columns)
            for name, text, absent in zip(columns, texts, missing, strict=True):
                if absent and text not in table_file.MISSING:
                    x[name] = pd.Series([text], dtype=object)
        sure = 1.0
        if hasattr(model, "predict_proba"):
            sure = float(np.max(model.predict_proba(x)))
        return model.predict(x)[0], sure

    return predict, named, -1 if on_grid else getattr(model, "n_features_in_", 0)


def _onnx(path: Path, _: list[str]) -> _Loaded:
    """Return what an ONNX classifier or regressor answers: its first output."""
    try:
        import onnxruntime
    except ImportError:
        raise UserError(
            f"{path} needs onnxruntime: pip install 'curvote[onnx]'."
        ) from None
    try:
        session = onnxruntime.InferenceSession(
            str(path), providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # noqa: BLE001 - a loader's errors are of any kind
        raise UserError(
            f"{path} holds no ONNX model: {type(error).__name__}."
        ) from None
    entry, *more = session.get_inputs()
    if more:
        raise UserError(f"{path} has {len(more) + 1} inputs; one of numbers is right.")

    def predict(cells: Cells, columns: list[str]) -> tuple[Any, float]:
        kind = np.float64 if entry.type == "tensor(double)" else np.float32
        x = _numbers(cells, columns).astype(kind)
        answer, *rest = session.run(None, {entry.name: x})
        sure = 1.0
        if rest:
            row = rest[0][0]
            values = row.values() if isinstance(row, dict) else np.ravel(row)
            sure = float(max(values, default=math.nan))
        return np.ravel(answer)[0], sure

    width = entry.shape[-1] if entry.shape else 0
    return predict, [], width if isinstance(width, int) else 0
