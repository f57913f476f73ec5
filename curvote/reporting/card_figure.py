"""The figure of a data card: each class against the public bounds.

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

from curvote.reporting import figures, style
from curvote.reporting.card import Bounds, Card, Columns, FeatureCard

KINDS = ("png", "svg")
MOST_HISTOGRAMS = 30
MOST_LEVELS = 60
MOST_CLASSES = 12
BINS = 24
MARGIN = 2 / BINS
WIDTH = 44
SPREAD = (0.1, 0.9)
EDGE: dict[str, Any] = {"color": style.INK, "lw": 0.8, "ls": (0, (2, 2))}
_CLEAN = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}

Values = NDArray[np.float64]
Labels = NDArray[np.int64]


def draw(card: Card, columns: Columns, folder: Path) -> list[Path]:
    """Write the card's figure into ``folder`` as NAME.png and NAME.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = images(card, columns, KINDS)
    return [figures.write(folder / f"{card.name}.{k}", drawn[k]) for k in KINDS]


def images(card: Card, columns: Columns, kinds: Sequence[str]) -> dict[str, bytes]:
    """Return the figure as ``svg``, ``png`` (150 dpi), both: same data, same bytes."""
    with mpl.rc_context({**style.RC, "svg.hashsalt": card.name}):
        drawn = figure(card, columns)
        return {kind: _saved(drawn, kind) for kind in kinds}


def _saved(drawn: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    drawn.savefig(buffer, format=kind, dpi=150, metadata=_CLEAN[kind])
    return buffer.getvalue()


def figure(card: Card, columns: Columns) -> Figure:
    """Draw histograms of the features or, of curves and images, the mean and spread."""
    values, (names, labels) = columns["curve"], _named(card, columns["label"])
    if 0 < len(card.features) <= MOST_HISTOGRAMS:
        drawn = _histograms(card, values, labels, len(names))
    else:
        drawn = _curves(card, values, labels, len(names))
    drawn.legend(
        handles=_legend(card, names, labels),
        loc="outside upper left",
        ncols=3,
        borderaxespad=0.2,
    )
    return drawn


def _named(card: Card, labels: Labels) -> tuple[list[str], Labels]:
    """Return the classes to be drawn, and which one each record is of."""
    if len(card.classes) <= MOST_CLASSES:
        return [*card.classes], labels
    return [f"all {len(card.classes)} classes"], np.zeros_like(labels)


def _legend(card: Card, names: list[str], labels: Labels) -> list[Artist]:
    classes = zip(names, style.class_colours(len(names)), strict=True)
    handles: list[Artist] = [
        Patch(color=colour, alpha=0.6, label=f"{name} ({np.sum(labels == k):,})")
        for k, (name, colour) in enumerate(classes)
    ]
    if card.features or card.bounds:
        handles.append(Line2D([], [], **EDGE, label="public bounds"))
    return handles


def _histograms(card: Card, values: Values, labels: Labels, classes: int) -> Figure:
    count = len(card.features)
    drawn, axes = style.panels(count, narrow=False, height=1.9, share_y=False)
    for j, (ax, feature) in enumerate(zip(axes, card.features, strict=True)):
        _histogram(ax, feature, values[:, j], labels, classes)
    return drawn


def _histogram(
    ax: Axes,
    feature: FeatureCard,
    values: Values,
    labels: Labels,
    classes: int,
) -> None:
    bounds = feature.bounds
    at = edges(bounds, values)
    # What lies outside counts in the outermost bins, beyond the dashed lines.
    inside = np.clip(values, at[0], at[-1])
    for k, colour in enumerate(style.class_colours(classes)):
        mine = inside[labels == k]
        if len(mine):
            share = np.histogram(mine, at)[0] / len(mine)
            ax.stairs(100 * share, at, fill=True, color=colour, alpha=0.35)
            ax.stairs(100 * share, at, color=colour, lw=1.2)
    for edge in (bounds.lower, bounds.upper):
        ax.axvline(edge, **EDGE)
    ax.set_xlim(at[0], at[-1])
    ax.set_title(f"{feature.name}{outside(bounds)}")
    ax.set_xlabel("\n".join(textwrap.wrap(feature.unit, WIDTH)))
    ax.set_ylabel("% of the class")
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=_few_levels(bounds, values)))
    ax.grid(axis="y")


def edges(bounds: Bounds, values: Values) -> Values:
    """Return bins over the public bounds and a margin on each side for what is outside.

    A few whole numbers get a bin each.
    """
    lower, upper = bounds.lower, bounds.upper
    if _few_levels(bounds, values):
        low, high = math.floor(lower), math.ceil(upper)
        return np.asarray(np.arange(low - 1, high + 3) - 0.5, dtype=np.float64)
    inner = np.linspace(lower, upper, BINS + 1)
    inner[-1] = np.nextafter(upper, np.inf)  # a value on the bound is inside
    margin = MARGIN * (upper - lower)
    return np.concatenate(([lower - margin], inner, [upper + margin]))


def _few_levels(bounds: Bounds, values: Values) -> bool:
    few = bounds.upper - bounds.lower <= MOST_LEVELS
    return few and bool((values % 1 == 0).all())


def outside(bounds: Bounds) -> str:
    """Return the share of values outside, as words behind a title; none: no words."""
    if not bounds.clipped:
        return ""
    percent = 100 * bounds.clipped
    return f": {percent:.1f} % outside" if percent >= 0.1 else ": < 0.1 % outside"


def _curves(card: Card, values: Values, labels: Labels, classes: int) -> Figure:
    drawn, (ax,) = style.panels(1, narrow=False, height=3.4)
    for k, colour in enumerate(style.class_colours(classes)):
        mine = values[labels == k]
        if len(mine):
            low, high = np.quantile(mine, SPREAD, axis=0)
            ax.fill_between(card.grid, low, high, color=colour, alpha=0.25, lw=0)
            ax.plot(card.grid, mine.mean(axis=0), color=colour, lw=2)
    bounds = _common_bounds(card)
    if bounds:
        for edge in (bounds.lower, bounds.upper):
            ax.axhline(edge, **EDGE)
    ax.set_xlim(*card.domain)
    ax.set_xlabel(card.unit)
    ax.set_title(f"mean and middle 80 %{outside(bounds) if bounds else ''}")
    ax.grid(axis="y")
    return drawn


def _common_bounds(card: Card) -> Bounds | None:
    """Return the bounds of all values, if they are the same at each point."""
    if card.bounds or not card.features:
        return card.bounds
    first = card.features[0].bounds
    ends = {(each.bounds.lower, each.bounds.upper) for each in card.features}
    if len(ends) > 1:
        return None
    clipped = float(np.mean([each.bounds.clipped for each in card.features]))
    return Bounds(first.lower, first.upper, first.why, clipped)
