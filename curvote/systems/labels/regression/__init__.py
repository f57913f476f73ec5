"""Regression on private labels: noised numbers, learners on them, an honest score."""
