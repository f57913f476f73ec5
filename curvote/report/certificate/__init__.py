"""Certificates of runs: what was asked, by which law, of how many, at what cost."""
