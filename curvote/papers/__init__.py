"""Reproductions of papers: their pipelines, printed numbers and figures."""
