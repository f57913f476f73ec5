"""System of private numbers: a study of regressors trained on noised numbers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curvote.chain.settings import Epsilons, Strict
from curvote.protocols.labels.settings import Public
from curvote.protocols.settings import Clients, Learner

_Share = Annotated[float, Field(gt=0, lt=1)]


class Regression(Strict):
    """Noise of a number, and the shares of clients who send it for each purpose.

    Each client sends one number. Those in ``holdout`` send theirs for the score, by
    `piecewise`; where `rr_on_bins` is taken, the part ``share`` of the others sends it
    for the histogram that the bins are made for, and the rest for the model.
    """

    randomizer: Literal["auto", "piecewise", "hybrid", "rr_on_bins"] = "auto"
    share: _Share = 0.2
    holdout: _Share = 0.2


class RegressionSettings(Strict):
    """Settings that learning private numbers reads."""

    clients: Clients
    epsilon: Epsilons
    public: Public = Public()
    labels_regression: Regression = Regression()
    learners: list[Learner] = [Learner(name="ridge", label="ridge")]
