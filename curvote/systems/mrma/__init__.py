"""MRMA: model reversal and averaging (Qin & Bai, JMLR 2026)."""
