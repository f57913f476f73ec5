"""A release that is asked for again and again, as a subject of the audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from curvote.privacy import Budget
from curvote.validate import FloatArray


@dataclass(frozen=True, eq=False)
class Memo:
    """A way to release one client's record that claims to spend ``budget`` once.

    ``release(seed)`` returns the function that is called 1,000 times; ``truth`` is what
    a release without noise would be.
    """

    name: str
    params: Mapping[str, Any]
    budget: Budget
    truth: FloatArray
    release: Callable[[int], Callable[[], FloatArray]]
