"""Settings of private labels in pipelines.yaml, and the checks of their meaning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curvote.chain.settings import Count, Epsilons, Strict, Whole
from curvote.protocols.settings import Clients, Learner


class Public(Strict):
    """Treatment of public features before anybody is asked; it costs nothing.

    ``pca`` keeps ``size`` principal components of all records, those that are tested
    included: none of them needs a label. By `auto` numbers are standardised where they
    are not alike: of different units or public bounds.
    """

    scale: Literal["auto", "standard", "none"] = "auto"
    reduce: Literal["none", "pca"] = "none"
    size: Whole | None = None


class Labels(Strict):
    """Codes that are asked of labels, and what is made of them.

    ``encoder`` is a mechanism or `auto`. With two ``rounds`` half of the labels tell
    the other half what is likely (LP-2ST): a round of k-ary randomized response, then
    one among the labels that the first round holds likely. ``holdout`` is the share of
    codes that takes no part in choosing and says how good the choice is. ``decide``
    says whether classes count as often as they are, or alike.
    """

    encoder: str = "auto"
    rounds: Literal[1, 2] = 1
    holdout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    decide: Literal["accuracy", "balanced"] = "accuracy"
    calibrate: bool = True


class Owners(Clients):
    """Numbers of clients in each role; where labels are elsewhere, none here."""

    train: Count = 0


class LabelSettings(Strict):
    """Settings that private labels read."""

    clients: Owners = Owners()
    epsilon: Epsilons
    public: Public = Public()
    labels: Labels = Labels()
    learners: list[Learner] = [Learner(name="auto", label="auto")]
