"""Phoneme log-periodograms of *The Elements of Statistical Learning* (from TIMIT).

4509 curves of 256 equidistant frequencies up to 8 kHz, five phonemes, 437 speakers.
The unit of privacy is one curve; a speaker has several.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from curvote.base import validate
from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.chain.settings import Strict
from curvote.data import columns, raw_files, reader
from curvote.data.raw_files import Source, read

if TYPE_CHECKING:
    import pandas as pd


SIMULATED = False
FILE = "phonemes"
REST = "rest"
POINTS = 256
DOMAIN = (0.0, 8.0)
Label = Literal["aa", "ao", "dcl", "iy", "sh"]
PHONEMES: tuple[Label, ...] = get_args(Label)
TITLE = "Phoneme log-periodograms (TIMIT)"
MOST_EXAMPLES = 5
_CURVE = [f"x.{i}" for i in range(1, POINTS + 1)]
_COLUMN = {reader.MISSING: "is missing", reader.UNEXPECTED: "is not expected"}
_COLUMNS = ["row.names", "g", "speaker", *_CURVE]


class Parameters(Strict):
    """Settings of ``source:``: which phonemes, and whether by speaker."""

    name: Literal["phonemes"] = "phonemes"
    positive: Label = "sh"
    negative: Label | Literal["rest"] = "iy"
    classes: (
        Annotated[
            tuple[Label, ...], columns.all_classes(PHONEMES), columns.DISTINCT_CLASSES
        ]
        | None
    ) = None
    groups: Literal["speaker"] | None = None
    split: columns.Split | None = None

    @field_validator("negative")
    @classmethod
    def _check_two_classes(cls, negative: str, info: ValidationInfo) -> str:
        if negative == info.data.get("positive"):
            raise PydanticCustomError("same", "it must differ from positive")
        return negative

    @model_validator(mode="after")
    def _check_one_way(self) -> Parameters:
        columns.check_one_way(self, "positive", "negative")
        return self


@dataclass(frozen=True, eq=False)
class ClientTable:
    """Clients as rows: ``curves`` (n, T), ``labels`` (n,), class indices.

    ``ids`` (n,) are the publisher's row names, the same whatever classes are chosen.
    ``groups`` (n,) numbers the speakers in order of first appearance, ``tested`` (n,)
    is 1 for those of the publisher's test part; ``notes`` are facts that a report must
    state.
    """

    ids: NDArray[np.int64]
    curves: NDArray[np.float64]
    labels: NDArray[np.int64]
    groups: NDArray[np.int64]
    tested: NDArray[np.int64]
    classes: Classes
    notes: list[str]


def load_curves(path: Path, names: Sequence[str] = ("iy", "sh")) -> ClientTable:
    """Return the curves of some phonemes from the (gzipped) file at ``path``.

    ``rest`` stands for all that are not named.

    Raises:
        UserError: a damaged file, a wrong schema, or a label that is not in the file.
    """
    frame = check_schema(parse(read(path)))
    phonemes = [*frame["g"].unique().tolist(), REST]
    named = Classes(validate.one_of(phonemes, phoneme=name) for name in names)
    label = frame["g"].where(frame["g"].isin(named), REST)
    chosen = frame[label.isin(named)]
    speakers, _ = chosen["speaker"].factorize()
    curves = np.bincount(speakers)
    return ClientTable(
        ids=chosen["row.names"].to_numpy(dtype=np.int64),
        curves=chosen[_CURVE].to_numpy(dtype=np.float64),
        labels=label[chosen.index].map(named.index).to_numpy(dtype=np.int64),
        groups=np.asarray(speakers, dtype=np.int64),
        tested=chosen["speaker"].str.startswith("test.").to_numpy().astype(np.int64),
        classes=named,
        notes=[
            (
                f"The unit of privacy is one curve; {len(curves)} speakers have up to"
                f" {curves.max()} of these curves each."
            )
        ],
    )


def classes(parameters: Parameters) -> Classes:
    """Return the chosen phonemes; `REST` stands for all others."""
    return Classes(parameters.classes or (parameters.negative, parameters.positive))


def size(parameters: Parameters) -> int:
    """Return how many clients there are by the published counts, loading nothing."""
    counts, names = raw_files.find(FILE).counts, classes(parameters)
    return sum(n for name, n in counts.items() if name in names or REST in names)


files, width = columns.always((FILE,)), columns.always(POINTS)


def facts(parameters: Parameters, paths: columns.Paths) -> dict[str, Any]:
    """Return the public metadata of the chosen curves."""
    table = load_curves(paths[FILE], classes(parameters))
    return columns.facts(
        columns.class_counts(table.labels, table.classes),
        table.classes,
        title=TITLE,
        grid=np.linspace(*DOMAIN, POINTS).tolist(),
        domain=list(DOMAIN),
        unit="kHz",
        notes=table.notes,
        **columns.part_sizes(table.tested if parameters.split else None),
    )


def clients(parameters: Parameters, paths: columns.Paths) -> columns.ClientColumns:
    """Return the columns client_id, label, group (n,) and curve (n, T).

    With ``split`` there is a column part, too: 1 for the publisher's test part.
    """
    table = load_curves(paths[FILE], classes(parameters))
    part = table.tested if parameters.split else None
    return columns.client_columns(
        table.curves, table.labels, table.ids, table.groups, part=part
    )


def check(data: bytes, source: Source) -> None:
    """Raise a UserError unless schema, rows and class counts are those published."""
    reader.check_counts(check_schema(parse(data))["g"], source)


def parse(data: bytes) -> pd.DataFrame:
    """Return the table in ``data`` (LF or CR LF); UserError if there is none."""
    import pandas as pd

    try:
        frame = pd.read_csv(io.BytesIO(data), low_memory=False)
    except ValueError as error:  # pandas' parser errors and bad UTF-8 are ValueErrors
        raise UserError(f"it is no comma-separated table: {error}") from error
    if not frame.index.equals(pd.RangeIndex(len(frame))):  # made of the first field
        raise UserError("its rows have more fields than its header.")
    return frame


def check_schema(frame: pd.DataFrame) -> pd.DataFrame:
    """Return ``frame`` if it has the published columns, finite values, known classes.

    Lines are counted as in the file, the header being line 1.
    """
    import pandas as pd

    wrong: dict[str, dict[str, Any]] = {name: {} for name in _COLUMNS}
    for name in (name for name in _COLUMNS if name in frame):
        cells = frame[name]
        absent = cells.isna()
        wrong[name] = {"has no value": absent}
        if name == "g":
            unknown = ~(absent | cells.isin(PHONEMES))
            wrong[name] |= {f"not one of {', '.join(PHONEMES)}": unknown}
        elif name in _CURVE:
            numbers = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64)
            wrong[name] |= {"not a finite number": ~(absent | np.isfinite(numbers))}
    problems = [*map(_explain_violation, reader.list_violations(frame, wrong))]
    if problems:
        n_more = len(problems) - MOST_EXAMPLES
        more = f"; and {n_more} more" if n_more > 0 else ""
        raise UserError(f"wrong schema: {'; '.join(problems[:MOST_EXAMPLES])}{more}.")
    return frame.astype(dict.fromkeys(_CURVE, np.float64))


def _explain_violation(violation: reader.Violation) -> str:
    """Return a violation as text; line 1 of the file is the header."""
    if violation.line is None:
        return f"column {violation.column} {_COLUMN[violation.rule]}"
    place = f"line {violation.line + 2}, column {violation.column}"
    if violation.rule.startswith("has"):
        return f"{place} {violation.rule}"
    return f"{place} is {violation.value!r}, {violation.rule}"
