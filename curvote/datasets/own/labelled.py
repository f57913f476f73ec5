"""Class names of a user's own file: the positive one of two, or all of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from curvote.chain.settings import Strict
from curvote.classes import Classes
from curvote.datasets.listed import DISTINCT_CLASSES, EXPLICIT_CLASSES, check_one_way
from curvote.datasets.own.given import LabelText, Violations, check_labels


class Labelled(Strict):
    """Label settings of ``source:``: ``positive``, or the list ``classes``.

    With ``positive`` there are two, and the file says what the other one is.
    """

    positive: LabelText | None = None
    classes: (
        Annotated[tuple[LabelText, ...], EXPLICIT_CLASSES, DISTINCT_CLASSES] | None
    ) = None

    @model_validator(mode="after")
    def _check_one_way(self) -> Labelled:
        check_one_way(self, "positive")
        if self.positive is None and self.classes is None:
            message = "name the classes, or the positive one of two"
            raise PydanticCustomError("missing", message)
        return self

    @property
    def places(self) -> dict[str, int]:
        """Return the place of each class that is listed."""
        return {name: place for place, name in enumerate(self.classes or ())}

    @property
    def unlisted_text(self) -> str:
        """Return the words for a label that is not listed."""
        return f"is none of the classes {', '.join(self.classes or ())}"


def classes(parameters: Labelled) -> Classes | None:
    """Return the listed classes; None: the file names the second."""
    return Classes(parameters.classes) if parameters.classes else None


def resolve_classes(
    violations: Violations, column: str, texts: Collection[str], parameters: Labelled
) -> tuple[str, ...]:
    """Return the classes, negative first where there are two that are not listed.

    Raises:
        UserError: everything that is wrong so far, or labels ``texts`` that are not
            two, one of them positive.
    """
    positive = parameters.positive
    if positive is not None:
        check_labels(violations, column, texts, positive)
    violations.check()
    if positive is None:
        return parameters.classes or ()
    return next(name for name in texts if name != positive), positive
