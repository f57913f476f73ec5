"""The learner that takes the best of the others, by the likelihood of the codes."""

from __future__ import annotations

from curvote.labels.learners.spectral import SpectralVotes


class Auto(SpectralVotes):
    """Thin."""
