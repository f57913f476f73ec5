"""Registry of papers: their packages, the names of reproductions, pipeline files."""

PAPERS = (
    "curvote.reproduce.mrma",
    "curvote.reproduce.dtk",
    "curvote.reproduce.vec",
    "curvote.reproduce.qcu",
)
