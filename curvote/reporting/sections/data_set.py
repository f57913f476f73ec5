"""The card of a published data set and its figure; nobody else's records are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.datasets.lookup import chosen
from curvote.reporting import card_figure
from curvote.reporting.card import Card, FeatureCard, card
from curvote.reporting.section import Section
from curvote.run.config.source import given
from curvote.run.results import RunView

MOST = 40  # features in a table


@dataclass(frozen=True, eq=False)
class DataSet(Section):
    """The card of a data set, and an SVG drawing of each class against its bounds."""

    card: Card
    svg: bytes

    name: ClassVar[str] = "data"
    place: ClassVar[str] = "data"

    @property
    def features(self) -> Sequence[FeatureCard]:
        """The numbers of a record that are listed; an image has too many."""
        return self.card.features[:MOST]

    @property
    def hidden(self) -> int:
        """How many further ones there are."""
        return len(self.card.features) - len(self.features)

    @property
    def counts(self) -> str:
        """The records of each class."""
        return ", ".join(f"{name} {n:,}" for name, n in self.card.counts.items())


def gather(views: Sequence[RunView], _: pd.DataFrame) -> DataSet | None:
    """Return the card of a study's data set, if its files are published."""
    view, source = views[0], views[0].settings.source
    dataset, parameters = chosen(source)
    hidden = view.settings.production or given(source)
    if hidden or not dataset.files(parameters):
        return None
    facts, clients = (
        view.facts("ingest"),
        view.columns("ingest", "clients", view.place()),
    )
    made = card(source["name"], parameters, facts, clients, root=view.project.root)
    return DataSet(made, card_figure.images(made, clients, ["svg"])["svg"])
