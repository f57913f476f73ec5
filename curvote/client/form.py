"""Form of an owner's table: its columns, units, bounds and classes, stated once.

A task is held against this statement alone, before the table is opened. Were it held
against the table, each refusal would answer a question of the server's without noise:
whether a class is there, or on which side of a bound half of a column lies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from curvote import strict_json, table_file
from curvote.classes import Classes
from curvote.client.ledger import Ledger
from curvote.client.standing import POPULATION, Standing
from curvote.client.words import listed, printable
from curvote.errors import Problem, UserError
from curvote.identifier import normal
from curvote.task_form import looks

TO_STATE: Final = "TO_STATE"
# A column of which the task's bounds hold less than that is taken for one of another
# unit; by the owner's statement, so that no value has a say in it.
_LEAST_SHARE: Final = 0.5
_LARGEST: Final = 1 << 20  # bytes of a form
_SETTING: Final = "form"


class Column(BaseModel):
    """A number of each record: its unit, and the bounds that the owner knows it by."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bounds: tuple[FiniteFloat, FiniteFloat]
    unit: str = ""

    @field_validator("bounds")
    @classmethod
    def _rising(cls, bounds: tuple[float, float]) -> tuple[float, float]:
        if not bounds[0] < bounds[1]:
            raise ValueError("the first must be below the second")
        return bounds


class Form(BaseModel):
    """What a table of records is, whatever stands in it.

    ``id`` is the column that names each record (None: its row), ``label`` the one with
    its class, ``classes`` all that may stand there, ``columns`` what a server may ask
    about.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str = Field(min_length=1)
    classes: tuple[str, ...] = Field(min_length=2)
    id: str | None
    columns: dict[str, Column] = Field(default_factory=dict)

    @field_validator("classes", mode="before")
    @classmethod
    def _texts(cls, classes: Any) -> Any:
        """Return classes as they stand in a file: YAML reads 1 and true for texts."""
        if not isinstance(classes, list | tuple):
            return classes
        return tuple(
            str(each).lower() if isinstance(each, bool) else normal(str(each))
            for each in classes
        )

    @field_validator("classes")
    @classmethod
    def _different(cls, classes: tuple[str, ...]) -> tuple[str, ...]:
        if len({looks(word) for word in classes}) < len(classes):
            raise ValueError("two classes look alike: write them otherwise")
        return tuple(Classes(classes))

    @field_validator("columns")
    @classmethod
    def _others(cls, columns: dict[str, Column], info: ValidationInfo) -> Any:
        own = {info.data.get("id"), info.data.get("label")} & columns.keys()
        if own:
            raise ValueError(f"{', '.join(map(str, own))}: id and label are no numbers")
        return columns

    @property
    def text(self) -> str:
        """The form as the ledger keeps it."""
        return strict_json.canonical(self.model_dump(mode="json")).decode()

    @property
    def naming(self) -> str:
        """How records are named in the ledger: by an id, or by their row."""
        return "row" if self.id is None else "id"

    def refuse(
        self, features: Sequence[tuple[str, float, float]], asked: Classes
    ) -> None:
        """Refuse (UserError) a task that does not fit; the table has no say in it."""
        known = {normal(name) for name in asked}
        problems = [
            f"it has no class {printable(name)}, which your records may have"
            for name in self.classes
            if normal(name) not in known
        ]
        for name, lower, upper in features:
            column = self.columns.get(name)
            if column is None:
                problems.append(f"your form states no column {printable(name)}")
                continue
            low, high = column.bounds
            common = min(high, upper) - max(low, lower)
            if common < _LEAST_SHARE * (high - low):
                unit = f" {printable(column.unit)}" if column.unit else ""
                problems.append(
                    f"{printable(name)} is asked for from {lower:g} to {upper:g}, and"
                    f" yours goes from {low:g} to {high:g}{unit}: another unit?"
                )
        if problems:
            place = "the task does not fit the form of your table: "
            raise UserError.several(
                Problem(f"{place}{words}. Nothing was read, nothing drawn.")
                for words in problems
            )


def settled(ledger: Ledger) -> Form | None:
    """Return the form that the ledger holds now, None: none was stated."""
    found, number = None, 1
    while (text := ledger.setting(f"{_SETTING} {number}")) is not None:
        found, number = text, number + 1
    if found is None:
        return None
    return Form.model_validate(strict_json.parse(found.encode(), _LARGEST))


def settle(ledger: Ledger, form: Form) -> None:
    """Write a form down; what was stated before stays once something was released.

    Afterwards columns may be added. UserError: another id, label, class or column.
    """
    now, number = settled(ledger), 1
    _refuse_other_names(ledger, form)
    if now == form:
        return
    if now is not None and any(e.counts for e in ledger.entries(POPULATION)):
        kept = {name: form.columns.get(name) for name in now.columns}
        if (now.id, now.label, now.classes, now.columns) != (
            *(form.id, form.label, form.classes, kept),
        ):
            raise UserError(
                "something was released under the form that your ledger holds, so what"
                " it states stays: columns may be added, nothing else changes. Another"
                " table needs a ledger of its own (--ledger)."
            )
    while ledger.setting(f"{_SETTING} {number}") is not None:
        number += 1
    ledger.settle_once(f"{_SETTING} {number}", form.text)


def _refuse_other_names(ledger: Ledger, form: Form) -> None:
    """Refuse another way of naming records than the one that releases went by."""
    named = Standing.of(ledger).records
    if named is not None and named != form.naming:
        raise UserError(
            f"your ledger knows records by {named}, so {form.naming} would take them"
            " for others, and forget what was spent about them."
        )


def lines(form: Form) -> list[str]:
    """Return a form in words, a line each."""
    columns = [
        f"column  {printable(name)}: {own.bounds[0]:g} to {own.bounds[1]:g}"
        + (f" {printable(own.unit)}" if own.unit else "")
        for name, own in form.columns.items()
    ]
    named = "its row" if form.id is None else printable(form.id)
    label = f"label   {printable(form.label)}: {listed(form.classes)}"
    return [f"id      {named}", label, *columns]


def read(path: Path) -> Form:
    """Return the form in a YAML file; UserError: all that is wrong with it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        if path.stat().st_size > _LARGEST:
            raise UserError(f"{path} is too large for a form.")
        given = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (YAMLError, UnicodeError) as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"{path} is no YAML: {reason}.") from None
    if not isinstance(given, Mapping):
        raise UserError(f"{path} holds no form: id, label, classes and columns.")
    try:
        return Form.model_validate(given)
    except ValidationError as error:
        raise UserError.several(
            Problem(_wrong(path, each)) for each in error.errors()
        ) from None


def _wrong(path: Path, error: Any) -> str:
    place = ".".join(map(str, error["loc"]))
    if error["input"] == TO_STATE:
        return f"{path}: {place} is still to be stated."
    return f"{path}: {place}: {error['msg'].removeprefix('Value error, ')}."


def draft(path: Path) -> str:
    """Return the text of a form for the table at ``path``: its columns' names alone."""
    names = [*map(str, table_file.given(path).columns)]
    registry = names == ["record", "label"]
    columns = [
        f"  {_quoted(name)}: {{unit: {TO_STATE}, bounds: [{TO_STATE}, {TO_STATE}]}}"
        for name in names
        if not registry
    ]
    shown = "columns:" if columns else "columns: {}"
    return "\n".join(
        [
            f"# The form of {path.name}: what its owner knows without it. Tasks",
            "# are held against this, and never against the table.",
            "# id: the column that names each record (null: its row); label: the one",
            "# with its class; classes: all that may stand there.",
            f"id: {'record' if registry else TO_STATE}",
            f"label: {'label' if registry else TO_STATE}",
            f"classes: [{TO_STATE}, {TO_STATE}]",
            "# What a server may ask about. Bounds come from the device, the unit or a",
            "# guideline, never from the table. Take out id, label and all the rest.",
            shown,
            *columns,
            "",
        ]
    )


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
