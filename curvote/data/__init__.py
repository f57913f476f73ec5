"""Data sets: published files, simulations and users' own tables of clients."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["DATASETS", "RawFile", "Source", "catalogue", "locate"]

if TYPE_CHECKING:
    from curvote.data.raw_files import RawFile, Source, catalogue, locate
    from curvote.data.registry import DATASETS
else:
    __getattr__ = exports(
        __name__,
        {
            "DATASETS": "registry",
            "RawFile": "raw_files",
            "Source": "raw_files",
            "catalogue": "raw_files",
            "locate": "raw_files",
        },
    )
