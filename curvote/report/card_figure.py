"""Figure of a data card: each class against the public bounds.

Features are drawn as histograms, curves as the mean and the middle 80 % of each class.
Too many classes to be told apart in a drawing are drawn as one.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from curvote.report import figures, style
from curvote.report.card import Card, Columns, FeatureCard, PublicBounds

KINDS = ("png", "svg")
MOST_HISTOGRAMS = 30
MOST_LEVELS = 60
MOST_CLASSES = 12
BINS = 24
MARGIN = 2 / BINS
WIDTH = 44
SPREAD_QUANTILES = (0.1, 0.9)
EDGE: dict[str, Any] = {"color": style.INK, "lw": 0.8, "ls": (0, (2, 2))}
_METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}

Values = NDArray[np.float64]
Labels = NDArray[np.int64]


def draw_card(card: Card, columns: Columns, folder: Path) -> list[Path]:
    """Write the card's figure into ``folder`` as NAME.png and NAME.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    rendered = render_card(card, columns, KINDS)
    return [
        figures.write_atomically(folder / f"{card.name}.{k}", rendered[k])
        for k in KINDS
    ]


def render_card(card: Card, columns: Columns, kinds: Sequence[str]) -> dict[str, bytes]:
    """Return the card's figure as ``svg`` and ``png`` (150 dpi), reproducibly."""
    with mpl.rc_context({**style.RC, "svg.hashsalt": card.name}):
        rendered = card_figure(card, columns)
        return {kind: _figure_bytes(rendered, kind) for kind in kinds}


def _figure_bytes(canvas: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    canvas.savefig(buffer, format=kind, dpi=150, metadata=_METADATA[kind])
    return buffer.getvalue()


def card_figure(card: Card, columns: Columns) -> Figure:
    """Draw histograms of features, or mean and spread of curves and images."""
    values, (names, labels) = columns["curve"], _drawn_classes(card, columns["label"])
    if 0 < len(card.features) <= MOST_HISTOGRAMS:
        canvas = _draw_histograms(card, values, labels, len(names))
    else:
        canvas = _draw_curves(card, values, labels, len(names))
    canvas.legend(
        handles=_legend_handles(card, names, labels),
        loc="outside upper left",
        ncols=3,
        borderaxespad=0.2,
    )
    return canvas


def _drawn_classes(card: Card, labels: Labels) -> tuple[list[str], Labels]:
    """Return the names of the drawn classes, and the class of each record."""
    if len(card.classes) <= MOST_CLASSES:
        return [*card.classes], labels
    return [f"all {len(card.classes)} classes"], np.zeros_like(labels)


def _legend_handles(card: Card, names: list[str], labels: Labels) -> list[Artist]:
    classes = zip(names, style.class_colours(len(names)), strict=True)
    handles: list[Artist] = [
        Patch(color=colour, alpha=0.6, label=f"{name} ({np.sum(labels == k):,})")
        for k, (name, colour) in enumerate(classes)
    ]
    if card.features or card.bounds:
        handles.append(Line2D([], [], **EDGE, label="public bounds"))
    return handles


def _draw_histograms(
    card: Card, values: Values, labels: Labels, classes: int
) -> Figure:
    count = len(card.features)
    canvas, axes = style.make_panels(count, narrow=False, height=1.9, share_y=False)
    for j, (ax, feature) in enumerate(zip(axes, card.features, strict=True)):
        _draw_histogram(ax, feature, values[:, j], labels, classes)
    return canvas


def _draw_histogram(
    ax: Axes,
    feature: FeatureCard,
    values: Values,
    labels: Labels,
    classes: int,
) -> None:
    bounds = feature.bounds
    at = bin_edges(bounds, values)
    # What lies outside counts in the outermost bins, beyond the dashed lines.
    inside = np.clip(values, at[0], at[-1])
    for k, colour in enumerate(style.class_colours(classes)):
        class_values = inside[labels == k]
        if len(class_values):
            share = np.histogram(class_values, at)[0] / len(class_values)
            ax.stairs(100 * share, at, fill=True, color=colour, alpha=0.35)
            ax.stairs(100 * share, at, color=colour, lw=1.2)
    for edge in (bounds.lower, bounds.upper):
        ax.axvline(edge, **EDGE)
    ax.set_xlim(at[0], at[-1])
    ax.set_title(f"{feature.name}{outside_text(bounds)}")
    ax.set_xlabel("\n".join(textwrap.wrap(feature.unit, WIDTH)))
    ax.set_ylabel("% of the class")
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=_has_few_levels(bounds, values)))
    ax.grid(axis="y")


def bin_edges(bounds: PublicBounds, values: Values) -> Values:
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


def _has_few_levels(bounds: PublicBounds, values: Values) -> bool:
    few = bounds.upper - bounds.lower <= MOST_LEVELS
    return few and bool((values % 1 == 0).all())


def outside_text(bounds: PublicBounds) -> str:
    """Return the share of values outside as text for a title; "" if none."""
    if not bounds.clipped:
        return ""
    percent = 100 * bounds.clipped
    return f": {percent:.1f} % outside" if percent >= 0.1 else ": < 0.1 % outside"


def _draw_curves(card: Card, values: Values, labels: Labels, classes: int) -> Figure:
    canvas, (ax,) = style.make_panels(1, narrow=False, height=3.4)
    for k, colour in enumerate(style.class_colours(classes)):
        class_curves = values[labels == k]
        if len(class_curves):
            low, high = np.quantile(class_curves, SPREAD_QUANTILES, axis=0)
            ax.fill_between(card.grid, low, high, color=colour, alpha=0.25, lw=0)
            ax.plot(card.grid, class_curves.mean(axis=0), color=colour, lw=2)
    bounds = _common_bounds(card)
    if bounds:
        for edge in (bounds.lower, bounds.upper):
            ax.axhline(edge, **EDGE)
    ax.set_xlim(*card.domain)
    ax.set_xlabel(card.unit)
    ax.set_title(f"mean and middle 80 %{outside_text(bounds) if bounds else ''}")
    ax.grid(axis="y")
    return canvas


def _common_bounds(card: Card) -> PublicBounds | None:
    """Return the bounds that are the same at each point, None if none are."""
    if card.bounds or not card.features:
        return card.bounds
    first = card.features[0].bounds
    ends = {(feature.bounds.lower, feature.bounds.upper) for feature in card.features}
    if len(ends) > 1:
        return None
    clipped = float(np.mean([feature.bounds.clipped for feature in card.features]))
    return PublicBounds(first.lower, first.upper, first.why, clipped)
