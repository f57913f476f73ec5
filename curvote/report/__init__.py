"""Figures, tables and the one-file HTML report, built from tables only."""
