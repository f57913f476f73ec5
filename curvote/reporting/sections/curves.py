"""Page section of curves: from a record to the numbers that are sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from curvote.chain.stage import Columns
from curvote.classes import Classes
from curvote.protocols.finals import read_encoding
from curvote.reporting.data import format_percent
from curvote.reporting.section import Section
from curvote.reporting.sections import curves_figure
from curvote.reporting.sections.clients import replicate_roles
from curvote.reporting.sections.sample import CurveSample
from curvote.reporting.source_words import record_word
from curvote.representation.basis import IDENTITY
from curvote.representation.cosines import COSINES
from curvote.representation.rescale import RESCALING_CONSTANTS
from curvote.run.config.source import reads_user_file
from curvote.run.results import RunView

MAX_SHOWN = 60
DEGREES = {2: "linear", 3: "quadratic", 4: "cubic"}
_SAMPLE_WORDS = {
    "volunteers": "Volunteers' {record}s, public by consent.",
    "simulated": "Simulated {record}s: they belong to nobody.",
}


@dataclass(frozen=True, eq=False)
class Curves(Section):
    """Sample of records (None: none may be shown), and public facts.

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
        """Description of the three panels."""
        return f"Three panels by class. {self.caption}" if self.sample else ""

    def draw(self, narrow: bool) -> Figure:
        """Draw the records that may be shown."""
        return (
            curves_figure.draw_curves(self.sample, narrow) if self.sample else Figure()
        )

    @property
    def caption(self) -> str:
        """Caption of the figure, or the reason why there is none."""
        sample = self.sample
        if sample is None:
            return self._missing_reason
        reduced = (
            f"{_SAMPLE_WORDS[sample.who].format(record=self.record)} Each client"
            " reduces its"
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
    def _missing_reason(self) -> str:
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
        """Words for the share of values outside the public bounds."""
        if self.clipped is None:
            return ""
        if self.clipped == 0:
            return "No value lay outside its bounds."
        share = format_percent(self.clipped, 2)
        lay = f"{share} % of the values lay outside their bounds"
        return f"{lay} and were clipped to them."


def gather(views: Sequence[RunView], _: pd.DataFrame) -> Curves:
    """Return what the first of these cells shows of its records."""
    view, settings = views[0], views[0].settings
    hidden = settings.production or reads_user_file(settings.source)
    return Curves(
        _record_sample(views),
        settings.clients.public,
        _public_facts(views),
        None if hidden else _clipped_share(view),
        record_word(view.metadata("project")),
    )


def _clipped_share(view: RunView) -> float:
    """Return the share of values outside their public bounds.

    It counts clients' values: neither a release nor a study on an own file tells it.
    """
    counts = [
        (int(rows["clipped"].sum()), rows["z"].size) for rows in _first_clients(view)
    ]
    outside, every = map(sum, zip(*counts, strict=True))
    return outside / max(every, 1)


def _first_clients(view: RunView) -> Iterator[Columns]:
    """Return the clients that all replicates share, or those of the first."""
    encoded = view.artifact("project")
    if () in encoded.places("encoded"):
        return encoded.pieces("encoded")
    return iter([view.columns("project", "encoded", view.place())])


def _record_sample(views: Sequence[RunView]) -> CurveSample | None:
    """Return records that may be shown: volunteers' or simulated ones."""
    view, facts = views[0], views[0].metadata("project")
    if view.settings.intake is not None or facts.get("features"):
        return None
    rows, roles = replicate_roles(view, 0)
    if len(roles["public"]):
        return _make_sample(views, "volunteers", rows, roles["public"][:MAX_SHOWN])
    if facts["simulated"]:
        return _make_sample(views, "simulated", rows, roles["train"][:MAX_SHOWN])
    return None


def _make_sample(
    views: Sequence[RunView], source: str, rows: Columns, row_numbers: Any
) -> CurveSample:
    view, place = views[0], views[0].place()
    facts = view.metadata("project")
    encoding = read_encoding(view, place)
    project = view.settings.project.model_dump()
    clients = view.columns("ingest", "clients", place)
    return CurveSample(
        grid=np.asarray(facts["grid"]),
        unit=facts["unit"],
        domain=tuple(facts["domain"]),
        curves=clients["curve"][row_numbers],
        fitted=rows["coefficients"][row_numbers]
        @ np.linalg.pinv(encoding.projection.matrix).T,
        z=rows["z"][row_numbers],
        labels=rows["label"][row_numbers],
        classes=Classes(facts["classes"]),
        basis=_describe_basis(project, [project["size"]]) + _describe_size_cells(views),
        rescale=_describe_rescale(project),
        who=source,
    )


def _describe_basis(project: Mapping[str, Any], sizes: Sequence[Any]) -> str:
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


def _describe_size_cells(views: Sequence[RunView]) -> str:
    """Return words for the cells that have this size, if there are others."""
    epsilon = views[0].cell["epsilon"]
    return (
        f", as for epsilon {epsilon:g}" if len(_first_setting_sizes(views)) > 1 else ""
    )


def _first_setting_sizes(views: Sequence[RunView]) -> list[Any]:
    """Return the sizes of the first setting, which may differ by epsilon."""
    first = views[0].cell
    same = (
        view.settings.project.size
        for view in views
        if (view.cell["setting"], view.cell["protocol"])
        == (first["setting"], first["protocol"])
    )
    return list(dict.fromkeys(same))


def _describe_rescale(project: Mapping[str, Any]) -> str:
    names = RESCALING_CONSTANTS[project["rescale"]]
    if project["rescale"] == "min_max" and project.get("bounds", "stated") != "stated":
        return f"min_max (bounds: {project['bounds'].replace('_', ' ')})"
    constants = ", ".join(f"{name} {_format_constant(project[name])}" for name in names)
    return f"{project['rescale']} ({constants})" if constants else project["rescale"]


def _format_constant(value: Any) -> str:
    if isinstance(value, list):
        return "(" + ", ".join(f"{number:g}" for number in value) + ")"
    return f"of the {value}" if isinstance(value, str) else f"{value:g}"


def _public_facts(views: Sequence[RunView]) -> list[str]:
    project = views[0].settings.project.model_dump()
    facts = views[0].metadata("project")
    return [
        _describe_record(facts),
        f"the basis: {_describe_basis(project, _first_setting_sizes(views))}",
        f"the rescaling: {_describe_rescale(project)}",
        f"the classes: {_describe_classes(facts['classes'])}",
    ]


def _describe_classes(classes: Sequence[str]) -> str:
    if len(classes) > 2:
        return ", ".join(classes)
    return f"{classes[1]} (+1) against {classes[0]} (-1)"


def _describe_record(facts: Mapping[str, Any]) -> str:
    """Return words for the values that a record consists of."""
    features = facts.get("features")
    if features:
        return f"the features: {', '.join(feature['name'] for feature in features)}"
    a, b = facts["domain"]
    points, unit = len(facts["grid"]), facts["unit"]
    return f"the grid: {points} points from {a:g} to {b:g} ({unit})"
