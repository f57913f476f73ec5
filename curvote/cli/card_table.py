"""Data card on the terminal, as two tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.markup import escape

from curvote.cli.tables import print_rows
from curvote.report.card import Card, PublicBounds

MAX_SHOWN_FEATURES = 40


def print_card(card: Card) -> None:
    """Print a data card as two tables: the data set, and its features."""
    facts = [{"": key, card.name: escape(text)} for key, text in _card_facts(card)]
    print_rows(facts, ("", card.name))
    if 0 < len(card.features) <= MAX_SHOWN_FEATURES:
        print()
        features = [
            {
                "feature": escape(feature.name),
                "unit": escape(feature.unit),
                "bounds": _format_bounds(feature.bounds),
                "missing": f"{feature.missing:,}",
                "clipped": _format_percent(feature.bounds.clipped),
                "why these bounds": escape(feature.bounds.why),
            }
            for feature in card.features
        ]
        print_rows(features, list(features[0]))


def _card_facts(card: Card) -> Iterator[tuple[str, str]]:
    yield "title", card.title
    yield "clients", f"{card.clients:,} of {card.points} numbers each"
    yield "classes", _format_shares(card.counts)
    for server in card.servers:
        yield f"  {server.name}", f"{server.clients:,}: {_format_shares(server.counts)}"
    if card.duplicates:
        rows, distinct = card.duplicates["rows"], card.duplicates["distinct"]
        yield "rows", f"{rows:,}, {distinct:,} distinct"
        yield "duplicates", str(card.duplicates["policy"])
    if card.missing:
        total = sum(card.missing["counts"].values())
        yield "missing", f"{total:,} values, policy: {card.missing['policy']}"
    if card.bounds:
        yield "bounds", f"{_format_bounds(card.bounds)}: {card.bounds.why}"
        yield "clipped", _format_percent(card.bounds.clipped)
    for file in card.files:
        yield "file", f"{file.file}: {file.title}, {file.url}"
        if file.sha256:
            yield "  SHA-256", f"{file.sha256} (decompressed)"
            yield "  origin", str(file.origin)
        yield "  licence", file.licence
        yield "  citation", file.citation
    for note in card.notes:
        yield "note", note


def _format_shares(counts: Mapping[str, int]) -> str:
    total = max(sum(counts.values()), 1)
    shares = (f"{name} {n:,} ({100 * n / total:.1f} %)" for name, n in counts.items())
    return ", ".join(shares)


def _format_bounds(bounds: PublicBounds) -> str:
    return f"[{bounds.lower:g}, {bounds.upper:g}]"


def _format_percent(share: float) -> str:
    return "< 0.01 %" if 0 < share < 0.0001 else f"{100 * share:.2f} %"
