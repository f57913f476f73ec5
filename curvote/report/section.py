"""Sections of a run's page that only some systems have.

Such a system names a module in its ``sections``. The module has a function
``gather(views, scores)``: from the run's cells of these systems and the scores of the
page it makes a `Section`, or None where it has nothing to show. The section's template
stands beside its module, under the same name; it sees the section as ``section``.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from matplotlib.figure import Figure

from curvote.base.errors import InternalError


class Section:
    """A section of the page: its name, place, figure and template.

    ``place`` is "numbers" (below the table of scores), "results" (after it), "data",
    "releases" (inside of what left clients) or "end". ``alt`` says what its figure
    shows; without one there is none. ``public`` are lines on what is public before any
    noise, and ``estimates`` is what it calls a stand-in for unknown errors.
    """

    name: ClassVar[str]
    place: ClassVar[str]

    @property
    def alt(self) -> str:
        """Return a description of the figure, for readers who cannot see it."""
        return ""

    @property
    def public(self) -> Sequence[str]:
        """Return the facts that are public before any noise, a line each."""
        return ()

    @property
    def estimates(self) -> str:
        """Return the name of an estimate of the unknown error, "" if none."""
        return ""

    def draw(self, narrow: bool) -> Figure:
        """Draw the figure, wide or for a narrow screen."""
        raise InternalError(f"the section {self.name} has no figure")

    @classmethod
    def template(cls) -> Path:
        """Return the path of the section's template."""
        file = f"{cls.name.replace('-', '_')}.html.j2"
        return Path(inspect.getfile(cls)).with_name(file)
