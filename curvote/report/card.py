"""Data card: the content of a published data set, and its public bounds.

A card counts individual values, and its figure shows their distribution by class. For
a data set that anybody may fetch this reveals nothing new; for records that belong to
clients it would be a leak. So a card exists only for data sets with a published file,
and a report may show a card's numbers for those alone, never a histogram of clients.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.data import lookup, raw_files
from curvote.data.columns import class_counts
from curvote.data.raw_files import RawFile

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Matplotlib is imported where a figure is drawn: who prints a card has no need of it.
Columns = Mapping[str, NDArray[Any]]
Json = dict[str, Any]


@dataclass(frozen=True)
class PublicBounds:
    """Public bounds, their reason, and the share of values outside them.

    ``clipped`` lies in [0, 1]: the share of values that clients will clip, once missing
    ones are settled by the data set's policy.
    """

    lower: float
    upper: float
    why: str
    clipped: float


@dataclass(frozen=True)
class FeatureCard:
    """One feature of a record: its public bounds and missing values."""

    name: str
    unit: str
    bounds: PublicBounds
    missing: int


@dataclass(frozen=True)
class FileCard:
    """A raw file: publisher, terms, and the edition on this machine."""

    source: str
    title: str
    file: str
    url: str
    licence: str
    citation: str
    sha256: str | None
    origin: str | None


@dataclass(frozen=True)
class ServerCard:
    """One server: how many records it holds, and how many of each class."""

    name: str
    clients: int
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Card:
    """A published data set: ``clients`` records of ``points`` numbers each.

    ``rows`` are those of the file or of the chosen classes, as its facts state them;
    ``counts`` maps a class to its rows. ``servers`` is empty where one holds all,
    ``features`` for curves; ``bounds``
    are those of a curve's values, None where only coefficients are bounded.
    ``duplicates`` and ``missing`` are the facts' own, None where they state none.
    """

    name: str
    title: str
    rows: int
    clients: int
    counts: Mapping[str, int]
    unit: str
    domain: tuple[float, float]
    grid: tuple[float, ...]
    classes: Classes
    servers: tuple[ServerCard, ...]
    features: tuple[FeatureCard, ...]
    bounds: PublicBounds | None
    duplicates: Mapping[str, Any] | None
    missing: Mapping[str, Any] | None
    files: tuple[FileCard, ...]
    notes: tuple[str, ...]

    @property
    def points(self) -> int:
        """Return the length of one record."""
        return len(self.grid)

    def to_json(self) -> Json:
        """Return the card as plain JSON values, the grid by its number of points."""
        plain = asdict(self)
        del plain["grid"]
        return plain | {"points": self.points}


def make_card(
    name: str,
    parameters: Any,
    facts: Json,
    columns: Columns,
    *,
    files: Mapping[str, RawFile] | None = None,
    root: Path | None = None,
) -> Card:
    """Return the card of data set ``name`` from its facts and its client columns.

    ``files`` maps a name in data/sources.toml, of the project at ``root``, to the file
    that was read; without it the card does not say which edition is here.

    Raises:
        UserError: a data set without a published file; its records are private.
    """
    dataset = published_dataset(name, root)
    catalogue = raw_files.catalogue(root)
    values = columns["curve"]
    counts = (facts.get("missing") or {}).get("counts", {})
    bounds = facts.get("bounds")
    classes, servers = facts["classes"], []
    for place, server in enumerate(facts.get("servers") or ()):
        labels = columns["label"][columns["group"] == place]
        by_class = dict(zip(classes, class_counts(labels, classes), strict=True))
        servers.append(ServerCard(server, len(labels), by_class))
    features = []
    for j, feature in enumerate(facts.get("features") or ()):
        called, its_bounds = feature["name"], _bounds_card(feature, values[:, j])
        missing = counts.get(called, 0)
        features.append(FeatureCard(called, feature["unit"], its_bounds, missing))
    raw_cards = []
    for file_name in dataset.files(parameters):
        source, raw_file = catalogue[file_name], (files or {}).get(file_name)
        about = source.name, source.title, source.file, source.url
        edition = (raw_file.sha256, raw_file.origin) if raw_file else (None, None)
        raw_cards.append(FileCard(*about, source.licence, source.citation, *edition))
    return Card(
        name=name,
        title=facts["title"],
        rows=facts["rows"],
        clients=len(columns["label"]),
        counts=facts["counts"],
        unit=facts["unit"],
        domain=(facts["domain"][0], facts["domain"][1]),
        grid=tuple(facts["grid"]),
        classes=Classes(facts["classes"]),
        servers=tuple(servers),
        features=tuple(features),
        bounds=_bounds_card(bounds, values) if bounds else None,
        duplicates=facts.get("duplicates"),
        missing=facts.get("missing"),
        files=tuple(raw_cards),
        notes=tuple(facts["notes"]),
    )


def published_dataset(name: str, root: Path | None = None) -> Any:
    """Return a data set; UserError unless it has published files."""
    dataset = lookup.find_dataset(name)
    if all(source.dataset != name for source in raw_files.catalogue(root).values()):
        raise UserError(
            f"{name} has no published file, so there is no card: its records are"
            " generated, or belong to clients."
        )
    return dataset


def _bounds_card(bounds: Json, values: FloatArray) -> PublicBounds:
    lower, upper = float(bounds["lower"]), float(bounds["upper"])
    outside = (values < lower) | (values > upper)
    clipped = float(outside.mean()) if outside.size else 0.0
    return PublicBounds(lower, upper, bounds["why"], clipped)


MOST_HISTOGRAMS = 30
MOST_LEVELS = 60
MOST_CLASSES = 12
BINS = 24
MARGIN = 2 / BINS
WIDTH = 44
SPREAD_QUANTILES = (0.1, 0.9)


def draw_card(card: Card, columns: Columns, folder: Path) -> list[Path]:
    """Write the card's figure into ``folder`` as NAME.png and NAME.svg."""
    from curvote.report import figures

    folder.mkdir(parents=True, exist_ok=True)
    rendered = render_card(card, columns, figures.KINDS)
    return [
        figures.write_atomically(folder / f"{card.name}.{kind}", content)
        for kind, content in rendered.items()
    ]


def render_card(card: Card, columns: Columns, kinds: Sequence[str]) -> dict[str, bytes]:
    """Return the card's figure as ``svg`` and ``png`` (150 dpi), reproducibly."""
    import matplotlib as mpl

    from curvote.report import figures, style

    with mpl.rc_context({**style.RC, "svg.hashsalt": card.name}):
        canvas = card_figure(card, columns)
        return {kind: figures.save_bytes(canvas, kind) for kind in kinds}


def card_figure(card: Card, columns: Columns) -> Figure:
    """Draw histograms of features, or mean and spread of curves and images.

    Too many classes to be told apart in a drawing are drawn as one.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from curvote.report import style

    values, labels, names = columns["curve"], columns["label"], [*card.classes]
    if len(names) > MOST_CLASSES:
        names, labels = [f"all {len(names)} classes"], np.zeros_like(labels)
    colours = style.class_colours(len(names))
    features = card.features
    if 0 < len(features) <= MOST_HISTOGRAMS:
        n = len(features)
        canvas, axes = style.make_panels(n, narrow=False, height=1.9, share_y=False)
        for j, (ax, feature) in enumerate(zip(axes, features, strict=True)):
            _draw_histogram(ax, feature, values[:, j], labels, colours)
    else:
        canvas, (ax,) = style.make_panels(1, narrow=False, height=3.4)
        for k, colour in enumerate(colours):
            class_curves = values[labels == k]
            if len(class_curves):
                low, high = np.quantile(class_curves, SPREAD_QUANTILES, axis=0)
                ax.fill_between(card.grid, low, high, color=colour, alpha=0.25, lw=0)
                ax.plot(card.grid, class_curves.mean(axis=0), color=colour, lw=2)
        bounds, all_bounds = card.bounds, [feature.bounds for feature in features]
        if (
            all_bounds
            and not bounds
            and len({(b.lower, b.upper) for b in all_bounds}) == 1
        ):
            clipped = float(np.mean([b.clipped for b in all_bounds]))
            bounds = replace(all_bounds[0], clipped=clipped)  # the same at each point
        for edge in (bounds.lower, bounds.upper) if bounds else ():
            ax.axhline(edge, **style.EDGE)
        ax.set_xlim(*card.domain)
        ax.set_xlabel(card.unit)
        ax.set_title(f"mean and middle 80 %{outside_text(bounds) if bounds else ''}")
        ax.grid(axis="y")
    handles: list[Artist] = [
        Patch(color=colour, alpha=0.6, label=f"{name} ({np.sum(labels == k):,})")
        for k, (name, colour) in enumerate(zip(names, colours, strict=True))
    ]
    if features or card.bounds:
        handles.append(Line2D([], [], **style.EDGE, label="public bounds"))
    canvas.legend(handles=handles, loc="outside upper left", ncols=3, borderaxespad=0.2)
    return canvas


def _draw_histogram(
    ax: Axes,
    feature: FeatureCard,
    values: FloatArray,
    labels: NDArray[np.int64],
    colours: Sequence[str],
) -> None:
    from matplotlib.ticker import MaxNLocator

    from curvote.report import style

    bounds = feature.bounds
    at = bin_edges(bounds, values)
    # What lies outside counts in the outermost bins, beyond the dashed lines.
    inside = np.clip(values, at[0], at[-1])
    for k, colour in enumerate(colours):
        class_values = inside[labels == k]
        if len(class_values):
            share = np.histogram(class_values, at)[0] / len(class_values)
            ax.stairs(100 * share, at, fill=True, color=colour, alpha=0.35)
            ax.stairs(100 * share, at, color=colour, lw=1.2)
    for edge in (bounds.lower, bounds.upper):
        ax.axvline(edge, **style.EDGE)
    ax.set_xlim(at[0], at[-1])
    ax.set_title(f"{feature.name}{outside_text(bounds)}")
    ax.set_xlabel("\n".join(textwrap.wrap(feature.unit, WIDTH)))
    ax.set_ylabel("% of the class")
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=_has_few_levels(bounds, values)))
    ax.grid(axis="y")


def bin_edges(bounds: PublicBounds, values: FloatArray) -> FloatArray:
    """Return bins over the public bounds, with a margin on each side.

    A few whole numbers get a bin each.
    """
    lower, upper = bounds.lower, bounds.upper
    if _has_few_levels(bounds, values):
        low, high = math.floor(lower), math.ceil(upper)
        return np.asarray(np.arange(low - 1, high + 3) - 0.5, dtype=np.float64)
    inner = np.linspace(lower, upper, BINS + 1)
    inner[-1] = np.nextafter(upper, np.inf)  # a value on the bound is inside
    margin = MARGIN * (upper - lower)
    return np.concatenate(([lower - margin], inner, [upper + margin]))


def _has_few_levels(bounds: PublicBounds, values: FloatArray) -> bool:
    few = bounds.upper - bounds.lower <= MOST_LEVELS
    return few and bool((values % 1 == 0).all())


def outside_text(bounds: PublicBounds) -> str:
    """Return the share of values outside as text for a title; "" if none."""
    if not bounds.clipped:
        return ""
    percent = 100 * bounds.clipped
    return f": {percent:.1f} % beyond" if percent >= 0.1 else ": < 0.1 % beyond"
