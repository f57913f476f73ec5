"""Model reversal and averaging (Qin & Bai, JMLR 2026): two rounds, reports then votes."""
