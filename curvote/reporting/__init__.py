"""Figures, tables and the one-file HTML report, built from tables only."""

from curvote.lazy import exports

__getattr__ = exports(
    __name__,
    {
        "PageData": "data",
        "render": "page",
        "save_figures": "figures",
        "score_table": "data",
    },
)
