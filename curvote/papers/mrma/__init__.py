"""MRMA: reproduction of Qin & Bai, JMLR 2026, and comparisons beyond it."""
