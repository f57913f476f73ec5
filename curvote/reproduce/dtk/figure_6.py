"""Figure 6: trained at one hospital, tested at another: a kernel without noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from curvote.datasets import heart, raw
from curvote.errors import InternalError
from curvote.reproduce.drawing import panels
from curvote.reproduce.gather import Evidence
from curvote.reproduce.rows import Row, finished
from curvote.run.project import Project
from curvote.transfer.exact import gram

Array = NDArray[np.float64]

SPLITS = 200
TRAINED = 100
SPAN = 0.5  # section 6.2.1: features are scaled to [0, 1/2]; the bandwidth is 1


class Hospital(NamedTuple):
    """The features of its patients in [0, 1]^7, and who is ill."""

    cube: Array
    ill: NDArray[np.bool_]


def rows(found: Evidence) -> list[Row]:
    """Return a row a pair of hospitals, ``setting`` "cleveland -> hungarian"."""
    return finished(table(_hospitals(found.project)))


def _hospitals(project: Project | None) -> dict[str, Hospital]:
    """Return the hospitals of the paper, from the files of a project."""
    if project is None:
        raise InternalError("figure 6 reads the hospitals' files: it needs a project")
    parameters = heart.Parameters(duplicates="keep")
    files = {name: raw.locate(project.root, name) for name in heart.files(parameters)}
    paths = {name: file.path for name, file in files.items() if file}
    columns = heart.clients(parameters, paths)
    bounds = [(it.lower, it.upper) for it in heart.TABLE.schema.features]
    low, high = np.array(bounds, dtype=np.float64).T
    cube = (np.clip(columns["curve"], low, high) - low) / (high - low)
    return {
        name: Hospital(cube[own], columns["label"][own] == 1)
        for code, name in enumerate(heart.servers(parameters))
        for own in (columns["group"] == code,)
    }


def table(hospitals: Mapping[str, Hospital]) -> Iterator[Row]:
    """Yield the mean accuracy of each pair in `SPLITS` random choices."""
    for name, own in hospitals.items():
        found = np.array([_split(name, hospitals, seed) for seed in range(SPLITS)])
        for other, accuracy in zip(hospitals, 100 * found.T, strict=True):
            yield {
                "setting": f"{name} -> {other}",
                "protocol": "clean",
                "method": "kernel",
                "group": f"{len(own.ill)} records",
                "quantity": "accuracy",
                "curvote": float(accuracy.mean()),
                "se": float(accuracy.std(ddof=1) / np.sqrt(SPLITS)),
            }


def _split(name: str, hospitals: Mapping[str, Hospital], seed: int) -> list[float]:
    """Return the accuracy everywhere of `TRAINED` patients of one hospital."""
    own = hospitals[name]
    order = np.random.default_rng(seed).permutation(len(own.ill))
    trained, rest = order[:TRAINED], order[TRAINED:]
    signed = own.ill[trained] - own.ill[trained].mean()
    tested = {other: it for other, it in hospitals.items() if other != name}
    tested[name] = Hospital(own.cube[rest], own.ill[rest])
    return [_accuracy(own.cube[trained], signed, tested[other]) for other in hospitals]


def _accuracy(cube: Array, signed: Array, tested: Hospital) -> float:
    told = gram("triangular", tested.cube, cube, 1 / SPAN) @ signed
    return float(((told > 0) == tested.ill).mean())


def figure(given: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the pairs as a table, lighter where accuracy is higher."""
    names = list(dict.fromkeys(_pair(row)[0] for row in given))
    values = np.reshape([row["curvote"] for row in given], (len(names), len(names)))
    drawn, (ax,) = panels(1, 4.0)
    ax.imshow(values, cmap="cividis", vmin=30, vmax=100)
    for (i, j), value in np.ndenumerate(values):
        ink = "black" if value > 70 else "white"
        ax.text(j, i, f"{value:.1f}", ha="center", va="center", color=ink)
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("tested at")
    ax.set_ylabel("100 records of")
    ax.set_title("accuracy (%)")
    return drawn


def _pair(row: Row) -> tuple[str, str]:
    first, _, second = row["setting"].partition(" -> ")
    return first, second


def brief(given: Sequence[Row]) -> Sequence[Row]:
    """Return all rows."""
    return given


def said(given: Sequence[Row]) -> Iterator[str]:
    """Yield the three sentences of the text beside what is seen."""
    yield "the paper: trained at Cleveland, Hungary is where the model is best"
    yield f"  {_from(given, 'cleveland')}"
    yield "the paper: trained in Switzerland, markedly lower everywhere, there as well"
    yield f"  {_from(given, 'switzerland')}"
    yield "the paper: trained at Long Beach (va), the same everywhere"
    yield f"  {_from(given, 'va')}"
    yield "widest range over the hospitals where a model is tested:"
    spans = {name: _span(given, name) for name in heart.HOSPITALS}
    yield "  " + ", ".join(f"{name} {span:.1f}" for name, span in spans.items())


def _own(given: Sequence[Row], name: str) -> list[Row]:
    return [row for row in given if _pair(row)[0] == name]


def _from(given: Sequence[Row], name: str) -> str:
    told = ((_pair(row)[1], row["curvote"]) for row in _own(given, name))
    return ", ".join(f"{other} {value:.1f}" for other, value in told)


def _span(given: Sequence[Row], name: str) -> float:
    values = [row["curvote"] for row in _own(given, name)]
    return float(max(values) - min(values))
