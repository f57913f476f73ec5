"""Python's filters of warnings, which all threads of a process share.

Whoever changes them or listens to what is warned of holds `FILTERS` meanwhile:
otherwise one thread hears what another does, or leaves its filters to everybody.
"""

from __future__ import annotations

import threading
from typing import Final

FILTERS: Final = threading.RLock()
