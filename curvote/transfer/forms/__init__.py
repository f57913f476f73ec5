"""Forms of a release: the sums over a server's records."""

from typing import TYPE_CHECKING

from curvote.lazy import exports

__all__ = ["FORMS", "form"]

if TYPE_CHECKING:
    from curvote.transfer.forms.making import form
    from curvote.transfer.forms.registry import FORMS
else:
    __getattr__ = exports(__name__, {"form": "making", "FORMS": "registry"})
