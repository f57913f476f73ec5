"""Models whose encoders read text: the same models, reading numbers for the texts.

Records are numbers everywhere else, and what an encoder makes of a text depends on its
place among the encoder's categories only.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base.errors import Problem, UserError, did_you_mean
from curvote.base.table_file import cell_text, parse_cells
from curvote.base.validate import FloatArray
from curvote.systems.utility.method.engines.base import predict_batched

# Records that are asked about a second time.
REPEATED_RECORDS: Final = 200


@dataclass(frozen=True)
class ModelDescription:
    """Description of a fitted classifier: kind, classes, columns in order."""

    kind: str
    classes: tuple[Any, ...]
    features: tuple[str, ...]


def describe_model(
    model: Any, features: Sequence[str] | None = None
) -> ModelDescription:
    """Return a model's description; ``features`` name columns it does not.

    UserError: no classifier, not fitted, one class only, several labels at once, no
    names, or names that are not the model's.
    """
    classes = _model_classes(model)
    names = _model_features(model, features)
    return ModelDescription(_model_kind(model), classes, names)


def _model_kind(model: Any) -> str:
    """Return the names of a pipeline's steps, or of the model's own kind."""
    steps = [step for _, step in getattr(model, "steps", ())]
    kinds = [_model_kind(step) for step in steps if step not in (None, "passthrough")]
    return " + ".join(kinds) if kinds else type(model).__name__


def _model_classes(model: Any) -> tuple[Any, ...]:
    """Return the classes; a model that is no fitted classifier is a UserError."""
    from sklearn.base import BaseEstimator, is_regressor
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    kind = type(model).__name__
    if not hasattr(model, "predict"):
        raise UserError(f"{kind} cannot predict; give a fitted classifier.")
    if isinstance(model, BaseEstimator) and is_regressor(model):
        raise UserError(
            f"{kind} is a regressor: its answers are numbers, which noise nearly always"
            " changes. Give a classifier."
        )
    try:
        if isinstance(model, BaseEstimator):
            check_is_fitted(model)
    except NotFittedError:
        raise UserError(f"{kind} is not fitted; fit it before you save it.") from None
    names = getattr(model, "classes_", None)
    if names is None:
        raise UserError(f"{kind} names no classes (classes_); give a classifier.")
    if isinstance(names, list):
        raise UserError(f"{kind} answers several questions at once; give one of them.")
    classes = tuple(np.asarray(names).tolist())
    if len(classes) < 2:
        raise UserError(
            f"{kind} knows one class only, {classes[0]!r}: every answer is the same,"
            " whatever the noise. Fit it on records of two classes or more."
        )
    return classes


def _model_features(model: Any, features: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the model's columns; without any a UserError."""
    model_names = getattr(model, "feature_names_in_", getattr(model, "columns", None))
    count = getattr(model, "n_features_in_", None)
    names = tuple(map(str, features)) if features else None
    if model_names is not None:  # its own, which ``features`` may repeat
        own_names = tuple(map(str, model_names))
        for name in names or ():
            if name not in own_names:
                hint = did_you_mean(name, own_names)
                raise UserError(f"the model has no column {name!r}.{hint}")
        if names not in (None, own_names):
            raise UserError(
                f"the model's columns are {','.join(own_names)}, in this order: leave"
                " out --features."
            )
        return own_names
    if names is None:
        count_text = f" of its {count} columns" if count else ""
        raise UserError(
            f"the model keeps no names{count_text} (it was fitted on an array): give"
            " them in the order of the fit, --features age,bmi,..."
        )
    if count not in (None, len(names)):
        raise UserError(
            f"--features names {len(names)} columns, the model has {count}."
        )
    if len(set(names)) < len(names):
        raise UserError("--features names a column twice.")
    return names


def checked_answers(model: Any, records: FloatArray) -> NDArray[Any]:
    """Return the model's answers to ``records`` (n, D), (n,).

    UserError: it cannot answer, answers differently when it is asked twice (in another
    order, so that no record may depend on its neighbours), or says what is no class.
    """
    try:
        first = predict_batched(model, records)
        repeated = predict_batched(model, records[:REPEATED_RECORDS][::-1])[::-1]
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 - a model's errors are of any kind
        words = f"{type(error).__name__}, {error}".strip().replace("\n", " ")
        raise UserError(
            f"the model cannot answer these records ({words}); if another version of"
            " its library fitted it, fit it again with this one."
        ) from None
    differ = int(np.count_nonzero(first[:REPEATED_RECORDS] != repeated))
    if differ:
        raise UserError(
            f"the model answers differently when asked twice ({differ} of"
            f" {len(repeated)} records): no agreement with a clean answer is defined."
            " Fix its random numbers (random_state), or ask about one record at a time."
        )
    classes = np.asarray(model.classes_).tolist()
    unknown = sorted(set(first.tolist()) - set(classes))
    if unknown:
        raise UserError(
            f"the model answers {unknown[0]!r}, which is none of its classes"
            f" {', '.join(map(repr, classes))}."
        )
    return first


def constant_note(predictions: NDArray[Any], labels: NDArray[Any] | None) -> str | None:
    """Return a note where every answer is the same, else None.

    ``labels`` (n,), in the model's classes, tell the base rate.
    """
    values = np.unique(predictions)
    if len(values) > 1:
        return None
    (only,) = values.tolist()
    rate = ""
    if labels is not None:
        share = 100 * np.mean(labels == only)
        rate = f"; {share:.1f} % of the labels are {only!r}, too"
    return (
        f"every answer on the {len(predictions)} records is {only!r}: agreement would"
        f" be 1 and mean nothing{rate}. Look at a model that tells classes apart (class"
        " weights, another threshold)."
    )


# The known texts of a column; a text is coded as its place among them.
Texts = Mapping[str, tuple[str, ...]]


def code_texts(model: Any) -> tuple[Any, Texts]:
    """Return the model as one of numbers, and the texts of its columns.

    A model whose encoders read no text is returned as it is, with none.
    """
    if not any(True for _ in _text_encoders(model)):
        return model, {}
    texts: dict[str, tuple[str, ...]] = {}
    copy = deepcopy(model)
    for columns, encoder, step, place in _text_encoders(copy):
        levels_by_name = zip(columns, encoder.categories_, strict=True)
        for i, (name, levels) in enumerate(levels_by_name):
            if _are_texts(levels):
                texts[name] = tuple(str(level) for level in levels)
                encoder.categories_[i] = np.arange(len(levels), dtype=np.float64)
        encoder.categories = "auto"
        # What an imputer in front took away, no longer is.
        encoder.feature_names_in_ = np.array(columns, dtype=object)
        for earlier in range(place):
            # An imputer of texts has nothing to do: records have no gaps.
            step.steps[earlier] = (step.steps[earlier][0], "passthrough")
    return copy, texts


def _are_texts(levels: Any) -> bool:
    return np.asarray(levels).dtype.kind in "OUS"


def _text_encoders(model: Any) -> Iterator[tuple[list[str], Any, Any, int]]:
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    steps = getattr(model, "steps", None)
    first = model if steps is None else steps[0][1]  # takes the model's own columns
    for _, part, columns in getattr(first, "transformers_", ()):
        names = [columns] if isinstance(columns, str) else list(columns)
        for place, (_, step) in enumerate(getattr(part, "steps", [("", part)])):
            read = getattr(step, "categories_", ())
            if len(read) == len(names) and any(map(_are_texts, read)):
                yield [str(name) for name in names], step, part, place
                break


MISSING: Final = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "<na>"})
MOST_GROUPS: Final = 20

Columns = Mapping[str, Sequence[Any]]


def model_matrix(
    columns: Columns, names: Sequence[str], where: str, texts: Texts | None = None
) -> FloatArray:
    """Return the columns ``names`` as numbers (n, D), in this order.

    ``texts`` are those of columns that hold text: a text is its place among them.
    ``where`` is what errors call the file. UserError, with every problem: a column that
    is not there, gaps, or text that means nothing, each with its count.
    """
    problems = [
        f"there is no column {name!r}.{did_you_mean(name, columns)}"
        for name in names
        if name not in columns
    ]
    values_by_name = {}
    for name in dict.fromkeys(name for name in names if name in columns):
        cells, known_texts = columns[name], None if texts is None else texts.get(name)
        values = parse_cells(cells, known_texts)
        values_by_name[name] = values
        wrong = ~np.isfinite(values)
        if not wrong.any():
            continue
        empty = gap_mask(cells) & wrong
        strange = wrong & ~empty
        if empty.any():
            problems.append(
                f"{name} has {int(empty.sum())} gaps in {len(cells)} records; fill them"
                " as the model's training did, or leave those records out."
            )
        if strange.any():
            first = cell_text(cells[int(np.argmax(strange))])[:40]
            what = "values that are no finite numbers"
            hint = "; encode it as the model's training did."
            if known_texts is not None:
                what = "texts that the model does not know"
                hint = f".{did_you_mean(first, known_texts)}"
            count = int(strange.sum())
            problems.append(f"{name} holds {count} {what}, such as {first!r}{hint}")
    if problems:
        raise UserError.several(Problem(f"{where}: {words}") for words in problems)
    table = np.column_stack([values_by_name[name] for name in names])
    if not len(table):
        raise UserError(f"{where}: it has no record.")
    return table


def gap_mask(cells: Sequence[Any]) -> NDArray[np.bool_]:
    """Return the mask of empty cells, however a file writes them."""
    return np.array([cell_text(cell).lower() in MISSING for cell in cells], dtype=bool)


def clip_records(
    records: FloatArray, places: Sequence[int], bounds: FloatArray, names: Sequence[str]
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return records clipped to ``bounds``, and a note for each moved column.

    One sentence for each column that had values beyond.
    """
    within, notes = records.copy(), []
    for place, (low, high) in zip(places, bounds, strict=True):
        within[:, place] = np.clip(records[:, place], low, high)
        count = int(np.count_nonzero(within[:, place] != records[:, place]))
        if count:
            notes.append(
                f"{names[place]}: {count} of {len(records)} records lie beyond"
                f" {low:g}:{high:g} and were moved to the edge"
            )
    return within, tuple(notes)


def label_codes(
    cells: Sequence[Any], name: str, classes: Sequence[Any], positive: str | None
) -> NDArray[np.int64]:
    """Return the class index of each record's label, (n,).

    With ``positive`` that value is the second of two classes and any other the first.
    UserError: gaps, a value that is no class, or ``positive`` where it says nothing.
    """
    _no_gaps(cells, name)
    texts = [_plain_text(cell) for cell in cells]
    codes = {_plain_text(class_name): place for place, class_name in enumerate(classes)}
    if positive is not None:
        if len(codes) != 2:
            raise UserError(
                f"--positive is for two classes; the model has {len(codes)}: its labels"
                " must be written as its classes are."
            )
        second = _plain_text(positive)
        _require_member(second, set(texts), f"--positive {positive}", name)
        codes = {text: int(text == second) for text in texts}
    for text in texts:
        what = f"the label {text!r} of column {name}"
        _require_member(text, set(codes), what, "the classes")
    return np.array([codes[text] for text in texts], dtype=np.int64)


def _require_member(text: str, allowed: set[str], what: str, owner: str) -> None:
    if text not in allowed:
        listed = ", ".join(sorted(allowed)[:10])
        raise UserError(f"{what} is none of {owner}: {listed}. Say --positive VALUE?")


def group_names(cells: Sequence[Any], name: str) -> NDArray[np.str_]:
    """Return the group of each record as text, (n,); UserError: gaps, or too many."""
    _no_gaps(cells, name)
    texts = np.array([_plain_text(cell) for cell in cells])
    count = len(np.unique(texts))
    if count > MOST_GROUPS:
        raise UserError(
            f"--group {name} has {count} different values, at most {MOST_GROUPS} are"
            " told apart; give a column of few groups (bins of an age)."
        )
    return texts


def _no_gaps(cells: Sequence[Any], name: str) -> None:
    count = int(gap_mask(cells).sum())
    if count:
        raise UserError(
            f"{name} has {count} gaps in {len(cells)} records; leave those records out."
        )


def _plain_text(value: Any) -> str:
    """Return a value as text: 1, 1.0 and '1' are one class."""
    text = str(value).strip()
    try:
        number = float(text)
    except ValueError:
        return text
    return f"{number:.12g}"
