"""The card of a data set on the terminal, plain text where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.markup import escape

from curvote.flows.output.tables import print_rows
from curvote.reporting.card import Bounds, Card, FileCard

MOST_FEATURES = 40


def print_card(card: Card) -> None:
    """Print what a card says, as two tables: the data set, and its features."""
    facts = [{"": key, card.name: escape(text)} for key, text in _facts(card)]
    print_rows(facts, ("", card.name))
    if 0 < len(card.features) <= MOST_FEATURES:
        print()
        features = _features(card)
        print_rows(features, list(features[0]))


def _facts(card: Card) -> Iterator[tuple[str, str]]:
    yield "title", card.title
    yield "clients", f"{card.clients:,} of {card.points} numbers each"
    yield "classes", _shares(card.counts)
    for server in card.servers:
        yield f"  {server.name}", f"{server.clients:,}: {_shares(server.counts)}"
    if card.duplicates:
        rows, distinct = card.duplicates["rows"], card.duplicates["distinct"]
        yield "rows", f"{rows:,}, {distinct:,} distinct"
        yield "duplicates", str(card.duplicates["policy"])
    if card.missing:
        total = sum(card.missing["counts"].values())
        yield "missing", f"{total:,} values, policy: {card.missing['policy']}"
    if card.bounds:
        yield "bounds", f"{_range(card.bounds)}: {card.bounds.why}"
        yield "clipped", _percent(card.bounds.clipped)
    for file in card.files:
        yield from _file(file)
    for note in card.notes:
        yield "note", note


def _shares(counts: Mapping[str, int]) -> str:
    total = max(sum(counts.values()), 1)
    each = (f"{name} {n:,} ({100 * n / total:.1f} %)" for name, n in counts.items())
    return ", ".join(each)


def _file(file: FileCard) -> Iterator[tuple[str, str]]:
    yield "file", f"{file.file}: {file.title}, {file.url}"
    if file.sha256:
        yield "  SHA-256", f"{file.sha256} (decompressed)"
        yield "  origin", str(file.origin)
    yield "  licence", file.licence
    yield "  citation", file.citation


def _features(card: Card) -> list[dict[str, str]]:
    return [
        {
            "feature": escape(feature.name),
            "unit": escape(feature.unit),
            "bounds": _range(feature.bounds),
            "missing": f"{feature.missing:,}",
            "clipped": _percent(feature.bounds.clipped),
            "why these bounds": escape(feature.bounds.why),
        }
        for feature in card.features
    ]


def _range(bounds: Bounds) -> str:
    return f"[{bounds.lower:g}, {bounds.upper:g}]"


def _percent(share: float) -> str:
    return "< 0.01 %" if 0 < share < 0.0001 else f"{100 * share:.2f} %"
