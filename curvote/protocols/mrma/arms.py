"""Published codes of the arms that tables hold."""

from typing import Final

REPORT_ARMS: Final = ("mrma", "pooled")
WEAK_ARMS: Final = ("weak", "pooled", "all_data")
