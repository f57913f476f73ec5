"""System `joined`: reports and public records in one classifier."""

from __future__ import annotations

from typing import Final

from curvote.chain.tables import Table
from curvote.protocols.direct.tables import CLASSIFIER

REPORTS_ALONE: Final = Table("reports_alone", CLASSIFIER.columns, unit="classifier")
