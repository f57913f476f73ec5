"""Data sets: published files, simulations and users' own tables of clients."""

from curvote.lazy import exports

__getattr__ = exports(
    __name__,
    {
        "DATASETS": "registry",
        "RawFile": "raw",
        "Source": "sources",
        "catalogue": "sources",
        "locate": "raw",
    },
)
