"""Model reversal and averaging (Qin & Bai, JMLR 2026): first reports, then votes."""
