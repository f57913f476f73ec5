"""Sources of curves: from a published file or a formula to a table of clients."""

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
