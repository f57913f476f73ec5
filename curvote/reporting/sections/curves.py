"""From a curve to numbers: what clients send is made of these, by public constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from curvote.chain.stage import Columns
from curvote.classes import Classes
from curvote.protocols.finals import encoding_of
from curvote.reporting.data import percent
from curvote.reporting.section import Section
from curvote.reporting.sections import curves_figure
from curvote.reporting.sections.clients import roles_of
from curvote.reporting.sections.sample import CurveSample
from curvote.reporting.source_words import record_of
from curvote.representation.basis import IDENTITY
from curvote.representation.cosines import COSINES
from curvote.representation.rescale import RESCALES
from curvote.run.config.source import given
from curvote.run.results import RunView

SHOWN = 60
DEGREES = {2: "linear", 3: "quadratic", 4: "cubic"}
_WHOSE = {
    "volunteers": "Volunteers' {record}s, public by consent.",
    "simulated": "Simulated {record}s: they belong to nobody.",
}


@dataclass(frozen=True, eq=False)
class Curves(Section):
    """``sample`` is None where no record may be shown.

    ``volunteers`` were set aside. ``clipped`` is the share of values outside their
    bounds, known in studies only. ``public`` says what everybody knows.
    """

    sample: CurveSample | None
    volunteers: int
    public: Sequence[str] = ()
    clipped: float | None = None
    record: str = "curve"

    name: ClassVar[str] = "curves"
    place: ClassVar[str] = "data"

    @property
    def alt(self) -> str:
        """What the three panels show."""
        return f"Three panels by class. {self.caption}" if self.sample else ""

    def draw(self, narrow: bool) -> Figure:
        """Draw the records that may be shown."""
        return curves_figure.draw(self.sample, narrow) if self.sample else Figure()

    @property
    def caption(self) -> str:
        """Describe the figure, or say why there is none."""
        sample = self.sample
        if sample is None:
            return self._missing
        reduced = (
            f"{_WHOSE[sample.who].format(record=self.record)} Each client reduces its"
            f" {self.record} (1) to {sample.z.shape[1]} numbers by {sample.basis} (2)"
        )
        if not sample.bounded:
            return (
                f"{reduced} and scales them by {sample.rescale} (3). What it reports is"
                " the direction in which they lie, so they need no bounds."
            )
        return (
            f"{reduced} and rescales them into [-1, 1] by {sample.rescale} (3). Noise"
            " is added to the numbers in (3) only, so the range between the dashed"
            " lines sets how much of it is needed."
        )

    @property
    def _missing(self) -> str:
        why = (
            "This report was given no volunteers' records"
            if self.volunteers
            else "This pipeline sets no volunteers aside"
        )
        return (
            f"No {self.record}s are shown. {why}, and nobody else's {self.record} is"
            " public: only volunteers' or simulated records may be drawn."
        )

    @property
    def outside(self) -> str:
        """Say how many values lay outside the public bounds; studies only."""
        if self.clipped is None:
            return ""
        if self.clipped == 0:
            return "No value lay outside its bounds."
        share = percent(self.clipped, 2)
        lay = f"{share} % of the values lay outside their bounds"
        return f"{lay} and were clipped to them."


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Curves:
    """Return what the first of these cells shows of its records."""
    view, settings = views[0], views[0].settings
    hidden = settings.production or given(settings.source)
    return Curves(
        _sample(views),
        settings.clients.public,
        _public(views),
        None if hidden else _clipped(view),
        record_of(view.facts("project")),
    )


def _clipped(view: RunView) -> float:
    """Return the share of values outside their public bounds.

    It counts clients' values: neither a release nor a study on an own file tells it.
    """
    counts = [(int(rows["clipped"].sum()), rows["z"].size) for rows in _first(view)]
    outside, every = map(sum, zip(*counts, strict=True))
    return outside / max(every, 1)


def _first(view: RunView) -> Iterator[Columns]:
    """Return the clients that all replicates share, or those of the first."""
    encoded = view.artifact("project")
    if () in encoded.places("encoded"):
        return encoded.pieces("encoded")
    return iter([view.columns("project", "encoded", view.place())])


def _sample(views: Sequence[RunView]) -> CurveSample | None:
    """Return records that may be shown: volunteers', or simulated ones; else None."""
    view, facts = views[0], views[0].facts("project")
    if view.settings.intake is not None or facts.get("features"):
        return None
    rows, roles = roles_of(view, 0)
    if len(roles["public"]):
        return _drawn(views, "volunteers", rows, roles["public"][:SHOWN])
    if facts["simulated"]:
        return _drawn(views, "simulated", rows, roles["train"][:SHOWN])
    return None


def _drawn(
    views: Sequence[RunView], who: str, rows: Columns, shown: Any
) -> CurveSample:
    view, place = views[0], views[0].place()
    facts = view.facts("project")
    encoding = encoding_of(view, place)
    project = view.settings.project.model_dump()
    clients = view.columns("ingest", "clients", place)
    return CurveSample(
        grid=np.asarray(facts["grid"]),
        unit=facts["unit"],
        domain=tuple(facts["domain"]),
        curves=clients["curve"][shown],
        fitted=rows["coefficients"][shown]
        @ np.linalg.pinv(encoding.projection.matrix).T,
        z=rows["z"][shown],
        labels=rows["label"][shown],
        classes=Classes(facts["classes"]),
        basis=_basis(project, [project["size"]]) + _only_at(views),
        rescale=_rescale(project),
        who=who,
    )


def _basis(project: Mapping[str, Any], sizes: Sequence[Any]) -> str:
    order, size = project["order"], sizes[0]
    if len(sizes) > 1:
        size = f"{', '.join(map(str, sizes[:-1]))} or {sizes[-1]}"
    if project["basis"] == IDENTITY:
        return "the features themselves"
    if project["basis"] == COSINES:
        return f"{size} two-dimensional cosines"
    if project["basis"] == "fourier":
        return f"{size} Fourier functions"
    return f"{size} {DEGREES.get(order, f'order-{order}')} B-splines"


def _only_at(views: Sequence[RunView]) -> str:
    """Say for which cells this size is the one, if there are others."""
    epsilon = views[0].cell["epsilon"]
    return f", as for epsilon {epsilon:g}" if len(_sizes(views)) > 1 else ""


def _sizes(views: Sequence[RunView]) -> list[Any]:
    """Return the sizes of the first setting, which may differ by epsilon."""
    first = views[0].cell
    same = (
        one.settings.project.size
        for one in views
        if (one.cell["setting"], one.cell["protocol"])
        == (first["setting"], first["protocol"])
    )
    return list(dict.fromkeys(same))


def _rescale(project: Mapping[str, Any]) -> str:
    given = RESCALES[project["rescale"]]
    if project["rescale"] == "min_max" and project.get("bounds", "stated") != "stated":
        return f"min_max (bounds: {project['bounds'].replace('_', ' ')})"
    constants = ", ".join(f"{name} {_stated(project[name])}" for name in given)
    return f"{project['rescale']} ({constants})" if constants else project["rescale"]


def _stated(value: Any) -> str:
    if isinstance(value, list):
        return "(" + ", ".join(f"{number:g}" for number in value) + ")"
    return f"of the {value}" if isinstance(value, str) else f"{value:g}"


def _public(views: Sequence[RunView]) -> list[str]:
    project = views[0].settings.project.model_dump()
    facts = views[0].facts("project")
    return [
        _where(facts),
        f"the basis: {_basis(project, _sizes(views))}",
        f"the rescaling: {_rescale(project)}",
        f"the classes: {_told_apart(facts['classes'])}",
    ]


def _told_apart(classes: Sequence[str]) -> str:
    if len(classes) > 2:
        return ", ".join(classes)
    return f"{classes[1]} (+1) against {classes[0]} (-1)"


def _where(facts: Mapping[str, Any]) -> str:
    """Say what a record consists of."""
    features = facts.get("features")
    if features:
        return f"the features: {', '.join(feature['name'] for feature in features)}"
    a, b = facts["domain"]
    points, unit = len(facts["grid"]), facts["unit"]
    return f"the grid: {points} points from {a:g} to {b:g} ({unit})"
