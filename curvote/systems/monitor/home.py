"""Models that run where the record is: a skops file, or an ONNX file by onnxruntime."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from curvote.base import table_file
from curvote.base.errors import UserError

ONNX = ".onnx"


def model_answer(path: Path, record: Path) -> tuple[str, float]:
    """Return the answer of the model at ``path`` about a record, and how sure it is.

    The record is one row below a header of the model's columns, as CSV or Parquet. The
    probability is that of the answer, 1 of a model that states none. A model that fails
    on the record has answered nothing, and is not sure: whatever the record holds,
    there is an answer. UserError: no such files, no model, or no record of one row.
    """
    cells = table_file.read_cells(record)
    if len(cells) != 1:
        raise UserError(f"{record} must hold one row, below a header of columns.")
    predict = _onnx(path) if path.suffix.lower() == ONNX else _skops(path)
    try:
        answer, sure = predict([*cells.columns], cells)
        return str(answer), float(sure)
    except Exception:  # noqa: BLE001 - a failure that shows would tell of the record
        return "", 0.0


def _numbers(names: list[str], cells: Any) -> np.ndarray:
    violations = table_file.Violations(Path("record"))
    return np.asarray(table_file.read_numbers(cells, names, violations), np.float64)


def _skops(path: Path) -> Any:
    """Return what a scikit-learn model answers, loaded as `curvote utility` does."""
    from curvote.systems.utility.method.models.loading import load_model

    model = load_model(path).model

    def predict(names: list[str], cells: Any) -> tuple[str, float]:
        x: Any = _numbers(names, cells)
        if hasattr(model, "feature_names_in_"):
            import pandas as pd

            x = pd.DataFrame(x, columns=names)[[*model.feature_names_in_]]
        sure = 1.0
        if hasattr(model, "predict_proba"):
            sure = float(np.max(model.predict_proba(x)))
        return str(model.predict(x)[0]), sure

    return predict


def _onnx(path: Path) -> Any:
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

    def predict(names: list[str], cells: Any) -> tuple[str, float]:
        (entry,) = session.get_inputs()
        kind = np.float64 if entry.type == "tensor(double)" else np.float32
        x = _numbers(names, cells).astype(kind)
        answer, *rest = session.run(None, {entry.name: x})
        sure = 1.0
        if rest:
            row = rest[0][0]
            values = row.values() if isinstance(row, dict) else np.ravel(row)
            sure = float(max(values, default=math.nan))
        return str(np.ravel(answer)[0]), sure

    return predict
