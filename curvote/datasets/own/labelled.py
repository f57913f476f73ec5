"""How a user's own file names its classes: the positive one of two, or all of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from curvote.chain.settings import Strict
from curvote.classes import Classes
from curvote.datasets.listed import ONCE, STATED, check_one_way
from curvote.datasets.own.given import LabelText, Violations, check_labels


class Labelled(Strict):
    """What ``source:`` says of the labels: ``positive``, or the list ``classes``.

    With ``positive`` there are two, and the file says what the other one is.
    """

    positive: LabelText | None = None
    classes: Annotated[tuple[LabelText, ...], STATED, ONCE] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Labelled:
        check_one_way(self, "positive")
        if self.positive is None and self.classes is None:
            said = "name the classes, or the positive one of two"
            raise PydanticCustomError("missing", said)
        return self

    @property
    def places(self) -> dict[str, int]:
        """Return the place of each class that is listed."""
        return {name: place for place, name in enumerate(self.classes or ())}

    @property
    def none_of_them(self) -> str:
        """Return the words for a label that is not listed."""
        return f"is none of the classes {', '.join(self.classes or ())}"


def classes(parameters: Labelled) -> Classes | None:
    """Return the classes if the pipeline lists them; else the file names the second."""
    return Classes(parameters.classes) if parameters.classes else None


def named(
    violations: Violations, column: str, known: Collection[str], parameters: Labelled
) -> tuple[str, ...]:
    """Return the classes, negative first where there are two that are not listed.

    Raises:
        UserError: everything that is wrong so far, or labels ``known`` that are not
            two, one of them positive.
    """
    positive = parameters.positive
    if positive is not None:
        check_labels(violations, column, known, positive)
    violations.check()
    if positive is None:
        return parameters.classes or ()
    return next(name for name in known if name != positive), positive
