"""Robustness of an answer, and bounds from it."""
