"""Maximum likelihood of the codes: multinomial logistic with the channel inside."""

from __future__ import annotations

from curvote.labels.learners.spectral import SpectralVotes


class LikelihoodVotes(SpectralVotes):
    """Thin."""

    def __init__(self, ridge: float | None = None) -> None:
        super().__init__()
        self.ridge = ridge
