"""Forms of a release: the sums over a server's records."""

from typing import TYPE_CHECKING

from curvote.base.lazy import exports

__all__ = ["FORMS", "form"]

if TYPE_CHECKING:
    from curvote.systems.transfer.method.task import FORMS, form
else:
    __getattr__ = exports(
        __name__,
        {
            "FORMS": "curvote.systems.transfer.method.task",
            "form": "curvote.systems.transfer.method.task",
        },
    )
