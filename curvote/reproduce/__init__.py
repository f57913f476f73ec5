"""A wing for each paper: its pipelines, its printed numbers, its figures."""
