"""Figures A.7 and A.8 of MRMA: curves as they are, projected, and rescaled."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.curves.basis import projection
from curvote.curves.encoding import rescale, volunteer_constants
from curvote.data import raw_files
from curvote.data.lookup import resolve_source
from curvote.papers.figure import draw_panels
from curvote.papers.reproduction import Evidence
from curvote.papers.rows import Row
from curvote.report import style

VOLUNTEERS: Final = 50


class Stages(NamedTuple):
    """The curves of two groups, (n, T) for each stage by its name."""

    source: str
    facts: dict[str, Any]
    positive: Any
    curves: dict[str, FloatArray]


def _stages(evidence: Evidence) -> Stages:
    """Return the curves of the first source whose files are here.

    Coefficients come back as curves by the functions of the basis. As printed, tanh
    takes them as they are; the centre and scale of 50 curves keep it from one side.
    """
    options, missing = evidence.entry.options, []
    for source in options["sources"]:
        dataset, parameters = resolve_source(source)
        located = {
            name: raw_files.locate(evidence.project.root, name, download=False)
            for name in dataset.files(parameters)
        }
        paths = {name: file.path for name, file in located.items() if file}
        if len(paths) == len(located):
            break
        missing += [name for name in located if name not in paths]
    else:
        raise UserError(
            f"{evidence.entry.name} needs {', '.join(missing)}: `curvote data fetch`"
            " says where each comes from."
        )
    columns = dataset.clients(parameters, paths)
    facts = dataset.facts(parameters, paths)
    basis = projection(options["basis"], options["size"], facts["grid"])
    coefficients = basis.apply(columns["curve"])
    order = np.random.default_rng(0).permutation(len(coefficients))
    centre, scale = volunteer_constants(coefficients[order[:VOLUNTEERS]])
    constants = {"centre": centre, "scale": scale}
    as_printed = {"centre": 0.0, "scale": 1.0}
    numbers = {
        "projected": coefficients,
        "max-abs": rescale("max_abs", coefficients, {})[0],
        "tanh, as printed": rescale("tanh", coefficients, as_printed)[0],
        "tanh, centred and scaled": rescale("tanh", coefficients, constants)[0],
    }
    functions = np.linalg.pinv(basis.matrix).T
    curves = {"raw": columns["curve"]}
    curves |= {name: values @ functions for name, values in numbers.items()}
    return Stages(str(source["name"]), facts, columns["label"] == 1, curves)


def stage_rows(evidence: Evidence, **_: Any) -> Iterator[Row]:
    """Yield for each stage how much of the curves' variance is between groups."""
    stages = _stages(evidence)
    for name, curves in stages.curves.items():
        share, members = stages.positive.mean(), stages.positive
        gap = curves[members].mean(axis=0) - curves[~members].mean(axis=0)
        between = share * (1 - share) * (gap**2).sum()
        yield {
            "pipeline": stages.source,
            "representation": name,
            "quantity": evidence.entry.quantity,
            "curvote": 100 * between / curves.var(axis=0).sum(),
        }


def stage_figure(_: Sequence[Row], evidence: Evidence) -> Figure:
    """Draw a panel a stage: some curves in grey, and the mean of each group."""
    stages = _stages(evidence)
    grid, n = np.asarray(stages.facts["grid"]), len(stages.positive)
    chosen = np.random.default_rng(1).permutation(n)[: evidence.entry.options["shown"]]
    groups = (~stages.positive, stages.positive), style.CLASS_COLOURS[:2]

    def draw(ax: Axes, stage: str) -> None:
        curves = stages.curves[stage]
        ax.plot(grid, curves[chosen].T, color=style.UNUSED, lw=0.5, alpha=0.6)
        for name, members, colour in zip(stages.facts["classes"], *groups, strict=True):
            mean = curves[members].mean(axis=0)
            ax.plot(grid, mean, color=colour, lw=2, label=f"mean of {name}")
        ax.set_xlabel(str(stages.facts.get("unit", "")))

    return draw_panels([*stages.curves], draw, 2.8)


def stage_conclusions(compared: Sequence[Row]) -> Iterator[str]:
    """Yield which data these are."""
    volunteers = f"{VOLUNTEERS} of them give centre and scale"
    yield f"curves of {compared[0]['pipeline']}; {volunteers}"
