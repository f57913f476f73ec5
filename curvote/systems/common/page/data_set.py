"""Page section of a published data set: its card and figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from curvote.data.lookup import resolve_source
from curvote.pipeline.config.source import reads_user_file
from curvote.pipeline.run.results import RunView
from curvote.report.card import Card, FeatureCard, make_card, render_card
from curvote.report.data import Section

MAX_FEATURES = 40  # features in a table


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
        return self.card.features[:MAX_FEATURES]

    @property
    def hidden(self) -> int:
        """Number of features that are not listed."""
        return len(self.card.features) - len(self.features)

    @property
    def counts(self) -> str:
        """Number of records of each class, in words."""
        return ", ".join(f"{name} {n:,}" for name, n in self.card.counts.items())


def gather_data_set(views: Sequence[RunView], _: pd.DataFrame) -> DataSet | None:
    """Return the card of a study's data set, if its files are published."""
    view, source = views[0], views[0].settings.source
    dataset, parameters = resolve_source(source)
    hidden = view.settings.production or reads_user_file(source)
    if hidden or not dataset.files(parameters):
        return None
    facts = view.metadata("ingest")
    clients = view.columns("ingest", "clients", view.place())
    data_card = make_card(
        source["name"], parameters, facts, clients, root=view.project.root
    )
    drawings = render_card(data_card, clients, ["svg"])
    return DataSet(data_card, drawings["svg"])
