"""Figure 6: kernel without noise, trained at one hospital, tested at another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from curvote.base.errors import InternalError
from curvote.base.validate import FloatArray
from curvote.data import raw_files
from curvote.data.public import heart
from curvote.papers.drawing import panels
from curvote.papers.evidence import Evidence
from curvote.papers.rows import Row, completed
from curvote.systems.transfer.method.exact import kernel_matrix

SPLITS = 200
TRAINED = 100
SPAN = 0.5  # section 6.2.1: features are scaled to [0, 1/2]; the bandwidth is 1


class Hospital(NamedTuple):
    """A hospital's features in [0, 1]^7, and its labels."""

    cube: FloatArray
    ill: NDArray[np.bool_]


@completed
def rows(_: str, evidence: Evidence) -> Iterator[Row]:
    """Yield a row for each pair of hospitals: trained at, tested at."""
    if evidence.project is None:
        raise InternalError("figure 6 reads the hospitals' files: it needs a project")
    parameters = heart.Parameters(duplicates="keep")
    files = {
        name: raw_files.locate(evidence.project.root, name)
        for name in heart.files(parameters)
    }
    paths = {name: file.path for name, file in files.items() if file}
    columns = heart.clients(parameters, paths)
    bounds = [(it.lower, it.upper) for it in heart.TABLE.schema.features]
    low, high = np.array(bounds, dtype=np.float64).T
    cube = (np.clip(columns["curve"], low, high) - low) / (high - low)
    hospitals = {}
    for code, name in enumerate(heart.servers(parameters)):
        members = columns["group"] == code
        hospitals[name] = Hospital(cube[members], columns["label"][members] == 1)
    yield from pair_accuracies(hospitals)


def pair_accuracies(hospitals: Mapping[str, Hospital]) -> Iterator[Row]:
    """Yield the mean accuracy of each pair in `SPLITS` random choices."""
    for name, records in hospitals.items():
        accuracies = np.array(
            [_split_accuracies(name, hospitals, seed) for seed in range(SPLITS)]
        )
        for other, accuracy in zip(hospitals, 100 * accuracies.T, strict=True):
            yield {
                "setting": f"{name} -> {other}",
                "protocol": "clean",
                "method": "kernel",
                "group": f"{len(records.ill)} records",
                "quantity": "accuracy",
                "curvote": float(accuracy.mean()),
                "se": float(accuracy.std(ddof=1) / np.sqrt(SPLITS)),
            }


def _split_accuracies(
    name: str, hospitals: Mapping[str, Hospital], seed: int
) -> list[float]:
    """Return the accuracy everywhere of `TRAINED` patients of one hospital."""
    records = hospitals[name]
    order = np.random.default_rng(seed).permutation(len(records.ill))
    trained, rest = order[:TRAINED], order[TRAINED:]
    signed = records.ill[trained] - records.ill[trained].mean()
    tested = {other: it for other, it in hospitals.items() if other != name}
    tested[name] = Hospital(records.cube[rest], records.ill[rest])
    accuracies = []
    for cube, ill in map(tested.__getitem__, hospitals):
        kernel = kernel_matrix("triangular", cube, records.cube[trained], 1 / SPAN)
        accuracies.append(float(((kernel @ signed > 0) == ill).mean()))
    return accuracies


def figure(results: Sequence[Row], _: Evidence | None = None) -> Figure:
    """Draw the pairs as a table, lighter where accuracy is higher."""
    names = list(dict.fromkeys(row["setting"].split(" -> ")[0] for row in results))
    values = np.reshape([row["curvote"] for row in results], (len(names), len(names)))
    fig, (ax,) = panels(1, 4.0)
    ax.imshow(values, cmap="cividis", vmin=30, vmax=100)
    for (i, j), value in np.ndenumerate(values):
        ink = "black" if value > 70 else "white"
        ax.text(j, i, f"{value:.1f}", ha="center", va="center", color=ink)
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("tested at")
    ax.set_ylabel("100 records of")
    ax.set_title("accuracy (%)")
    return fig


def conclusions(results: Sequence[Row]) -> Iterator[str]:
    """Yield three statements of the text beside the results."""
    yield "the paper: trained at Cleveland, Hungary is where the model is best"
    yield f"  {_tested_texts(results, 'cleveland')}"
    yield "the paper: trained in Switzerland, markedly lower everywhere, there as well"
    yield f"  {_tested_texts(results, 'switzerland')}"
    yield "the paper: trained at Long Beach (va), the same everywhere"
    yield f"  {_tested_texts(results, 'va')}"
    yield "widest range over the hospitals where a model is tested:"
    spans = []
    for name in heart.HOSPITALS:
        values = _tested_accuracies(results, name).values()
        spans.append(f"{name} {max(values) - min(values):.1f}")
    yield "  " + ", ".join(spans)


def _tested_accuracies(results: Sequence[Row], name: str) -> dict[str, float]:
    """Return the accuracy at each hospital of what one of them trained."""
    pairs = ((row["setting"].split(" -> "), row["curvote"]) for row in results)
    return {tested: value for (trained, tested), value in pairs if trained == name}


def _tested_texts(results: Sequence[Row], name: str) -> str:
    accuracies = _tested_accuracies(results, name).items()
    return ", ".join(f"{other} {value:.1f}" for other, value in accuracies)
